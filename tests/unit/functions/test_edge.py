"""What every function does alike: problems, request ids, scopes, and calls side by side."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import replace
from typing import Any

import pytest
from aws_lambda_powertools.event_handler import APIGatewayRestResolver

from functions import catalog
from functions.edge import wiring
from functions.edge.settings import Settings
from sandbox_router.model.failure import Failure, tree
from tests.unit.functions.world import NOBODY, REQUEST_ID, World, call, event, invoke, on

FAILURES = tree()


@contextmanager
def raising(error: BaseException) -> Iterator[None]:
    """A Router whose every use case raises this."""

    class Broken:
        def __getattr__(self, name: str) -> Any:
            raise error

    broken: Any = Broken()
    wiring.use(lambda _: broken, Settings(state=wiring.settings().state))
    yield


def given(row: catalog.Http) -> dict[str, Any]:
    """Valid parts of an event for any operation."""
    path = {"id": NOBODY, "snapshot_id": f"snap-{'a' * 26}", "port": "80", "kind": "e2b"}
    path["upload_id"] = f"upl-{'A' * 40}"
    bodies: Mapping[str, Any] = {
        "run_command": {"command": "x"},
        "update_sandbox": {"labels": {}},
        "write_file": b"x",
        "offer_download": {"path": "/a"},
        "offer_upload": {"path": "/a"},
    }
    body = bodies.get(row.name, {} if row.body_bytes else None)
    return {
        "path": {name: value for name, value in path.items() if "{" + name + "}" in row.path},
        "query": {"path": "/a"} if row.path.endswith(("/files", "/directories")) else {},
        "body": body,
    }


@pytest.mark.parametrize("failure", FAILURES, ids=lambda cls: cls.__name__)
def test_every_failure_is_its_problem_document(world: World, failure: type[Failure]) -> None:
    with raising(failure("because", retry_after=7, fields=(("a.b", "wrong"),))):
        got = on("get_sandbox", NOBODY)
    assert got.status == failure.status
    assert got.headers["content-type"] == "application/problem+json"
    assert got.headers["retry-after"] == "7"
    assert got.json == {
        "type": "https://sandbox-router.dev/problems/" + failure.code.replace("_", "-"),
        "title": failure.title,
        "status": failure.status,
        "detail": "because",
        "code": failure.code,
        "class": str(failure.klass),
        "retryable": failure.retryable,
        "outcome": str(failure.effect),
        "request_id": REQUEST_ID,
        "field_errors": [{"path": "a.b", "reason": "wrong"}],
    }


@pytest.mark.parametrize(
    "error", [KeyError("CANARY-x"), RecursionError("CANARY-y"), ValueError("CANARY-z")]
)
def test_what_nobody_expected_is_500_and_says_nothing(
    world: World, error: Exception, logged: io.StringIO
) -> None:
    with raising(error):
        got = on("get_sandbox", NOBODY)
    assert (got.status, got.code) == (500, "internal")
    assert "CANARY" not in got.text + logged.getvalue()
    assert type(error).__name__ in logged.getvalue()


@pytest.mark.parametrize("row", catalog.HTTP, ids=lambda row: row.name)
def test_every_answer_has_its_standing_headers(world: World, row: catalog.Http) -> None:
    got = call(row.name, **given(row))
    assert got.headers["x-request-id"] == REQUEST_ID
    assert got.headers["cache-control"] == "no-store"
    assert ("x-router-overhead-ms" in got.headers) == row.routed


@pytest.mark.parametrize("row", [r for r in catalog.HTTP if r.scope], ids=lambda row: row.name)
def test_every_operation_wants_its_scope(world: World, row: catalog.Http) -> None:
    parts = given(row)
    nobody = call(row.name, **parts, tenant=None)
    assert (nobody.status, nobody.code) == (401, "unauthenticated")
    assert nobody.headers["www-authenticate"] == "Bearer"
    other = "sandboxes:write" if row.scope == "sandboxes:read" else "sandboxes:read"
    for scopes in (other, "", f"{row.scope}:more"):
        refused = call(row.name, **parts, scopes=scopes)
        assert (refused.status, refused.code) == (403, "forbidden")
    for scopes in (str(row.scope), "admin"):
        assert call(row.name, **parts, scopes=scopes).status not in (401, 403)


@pytest.mark.parametrize("row", [r for r in catalog.HTTP if "{id}" in r.path], ids=lambda r: r.name)
def test_anothers_sandbox_is_not_there(world: World, row: catalog.Http) -> None:
    anothers_is_not_there(world, row, "id", [world.created(), NOBODY, "no-id"])


SNAPSHOTS = [row for row in catalog.HTTP if "{snapshot_id}" in row.path]


@pytest.mark.parametrize("row", SNAPSHOTS, ids=lambda row: row.name)
def test_anothers_snapshot_is_not_there(world: World, row: catalog.Http) -> None:
    box = world.created()
    mine = world.captured(box)
    anothers_is_not_there(world, row, "snapshot_id", [mine, f"snap-{'a' * 26}", box, "no-id"])
    assert world.first.stored()


def anothers_is_not_there(world: World, row: catalog.Http, name: str, ids: list[str]) -> None:
    calls = len(world.first.calls)
    parts = given(row)
    answers = set()
    for some_id in ids:
        parts["path"][name] = some_id
        got = call(row.name, **parts, tenant="other")
        answers.add((got.status, got.text))
    assert len(answers) == 1
    assert answers.pop()[0] == 404
    assert len(world.first.calls) == calls


@pytest.mark.parametrize("change", [{"path": "/v1/other"}, {"httpMethod": "PATCH"}])
def test_another_route_is_not_found(world: World, change: dict[str, str]) -> None:
    got = invoke("list_sandboxes", {**event("list_sandboxes"), **change})
    assert (got.status, got.code) == (404, "not_found")
    assert got.headers["x-request-id"] == REQUEST_ID


@pytest.mark.parametrize("asked", [{}, {"httpMethod": None}, {"path": 5, "httpMethod": "GET"}])
def test_an_event_that_is_none_is_500(world: World, asked: dict[str, Any]) -> None:
    got = invoke("get_health", asked)
    assert (got.status, got.code) == (500, "internal")
    assert got.headers["x-request-id"]


@pytest.mark.parametrize("request_id", [None, "", "a\nb", "x" * 200, '{"level":"ERROR"}'])
def test_a_request_id_is_made_when_the_gateways_is_none(world: World, request_id: Any) -> None:
    asked = event("get_health")
    asked["requestContext"]["requestId"] = request_id
    made = invoke("get_health", asked).headers["x-request-id"]
    assert len(made) == 36


def test_an_event_may_come_without_multi_values(world: World) -> None:
    asked = event("create_sandbox", body={}, headers={"Prefer": "wait=0"})
    del asked["multiValueHeaders"], asked["multiValueQueryStringParameters"]
    got = invoke("create_sandbox", asked)
    assert (got.status, got.headers["preference-applied"]) == (202, "wait=0")


def test_the_overhead_leaves_out_the_providers_time(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    from adapters.providers import http

    sandbox_id = world.created()
    get = world.router.get

    def slow(*given: Any, **more: Any) -> Any:
        http._spent(5.0)
        return get(*given, **more)

    monkeypatch.setattr(world.router, "get", slow)
    got = on("get_sandbox", sandbox_id)
    assert got.headers["x-router-overhead-ms"] == "0.0"


@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize("row", [r for r in catalog.HTTP if r.routed], ids=lambda r: r.name)
def test_no_provider_call_outlasts_the_gateways_patience(
    world: World, row: catalog.Http, streaming: bool
) -> None:
    from adapters.providers import http

    wiring.use(lambda _: world.router, replace(wiring.settings(), streaming=streaming))
    longest = row.timeout if row.stream and streaming else 29
    with wiring.waiting(row):
        assert longest - 5 < http._within(3600.0) < longest - 2
        assert http._within(1.0) == 1.0
    assert http._within(3600.0) == 3600.0


def test_calls_side_by_side_do_not_mix(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    resolve = APIGatewayRestResolver._resolve

    def late(app: APIGatewayRestResolver) -> Any:
        time.sleep(0.002)  # every other call has come in by now
        return resolve(app)

    monkeypatch.setattr(APIGatewayRestResolver, "_resolve", late)
    ids = {str(n): world.created(labels={"n": str(n)}) for n in range(8)}

    def look(n: str) -> None:
        for _ in range(5):
            box = on("get_sandbox", ids[n])
            assert (box.status, box.json["id"], box.json["labels"]) == (200, ids[n], {"n": n})
            assert call("list_sizes").json["default"] == "2x4"
            assert call("get_health").json == {"status": "ok"}

    with ThreadPoolExecutor(8) as threads:
        looks = [threads.submit(copy_context().run, look, n) for n in ids]
        for found in looks:
            found.result()
