"""Authorizer, queue worker and sweep."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any

import pytest

from functions.workers import advance, authorize, sweep
from sandbox_router.model.failure import StoreBusy
from sandbox_router.model.sandbox import Sandbox
from sandbox_router.model.secret import Secret
from tests.unit.functions.world import NOBODY, World, on

KEY = "sk-CANARY-" + "k" * 32
ARN = "arn:aws:execute-api:eu-west-1:123456789012:api1/prod/GET/v1/sandboxes/x"


def asked(*values: str, name: str = "Authorization") -> dict[str, Any]:
    return {"type": "REQUEST", "methodArn": ARN, "multiValueHeaders": {name: list(values)}}


@pytest.mark.parametrize(
    "event",
    [
        asked(f"Bearer {KEY}"),
        asked(f"bearer   {KEY} ", name="AUTHORIZATION"),
        {"methodArn": ARN, "headers": {"authorization": f"Bearer {KEY}"}},
    ],
)
def test_a_key_is_admitted_for_the_whole_stage(world: World, event: dict[str, Any]) -> None:
    key_id = world.router.add_key("acme", Secret(KEY), ["sandboxes:write", "sandboxes:read"])
    answer = authorize.handler(event, None)
    assert answer["principalId"] == key_id
    assert answer["context"] == {
        "tenant": "acme",
        "key_id": key_id,
        "scopes": "sandboxes:read sandboxes:write",
    }
    (statement,) = answer["policyDocument"]["Statement"]
    assert statement["Effect"] == "Allow"
    assert statement["Resource"] == "arn:aws:execute-api:eu-west-1:123456789012:api1/prod/*"
    assert KEY not in json.dumps(answer)


@pytest.mark.parametrize(
    "event",
    [
        asked(),
        asked(""),
        asked("Bearer"),
        asked("Bearer "),
        asked(KEY),
        asked(f"Basic {KEY}"),
        asked(f"Bearer {KEY}x"),
        asked(f"Bearer {KEY[:-1]}"),
        asked(f"Bearer {KEY} {KEY}"),
        asked(f"Bearer {KEY}\n"),
        asked("Bearer k\u00e9y"),
        asked("Bearer " + "x" * 9_000),
        asked(f"Bearer {KEY}", f"Bearer {KEY}"),
        {"methodArn": ARN},
        {"methodArn": ARN, "headers": None, "queryStringParameters": {"key": KEY}},
    ],
    ids=range(15),
)
def test_everything_else_is_the_same_401(
    world: World, event: dict[str, Any], logged: io.StringIO
) -> None:
    world.router.add_key("acme", Secret(KEY), ["sandboxes:read"])
    with pytest.raises(Exception, match=r"^Unauthorized$") as caught:
        authorize.handler(event, None)
    assert caught.value.__cause__ is None
    assert KEY[:12] not in logged.getvalue()


def test_a_busy_store_is_no_401(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(key: Secret) -> None:
        raise StoreBusy

    monkeypatch.setattr(world.router, "authenticate", busy)
    with pytest.raises(StoreBusy):
        authorize.handler(asked(f"Bearer {KEY}"), None)


def record(message_id: str, body: str) -> dict[str, Any]:
    return {"messageId": message_id, "body": body, "eventSource": "aws:sqs", "attributes": {}}


def batch(*bodies: str) -> dict[str, Any]:
    return {"Records": [record(str(n), body) for n, body in enumerate(bodies)]}


def message(sandbox_id: str, **more: Any) -> str:
    return json.dumps({"sandbox_id": sandbox_id, **more})


def failed(event: dict[str, Any]) -> list[str]:
    answer: Mapping[str, Any] = advance.handler(event, None)
    return [each["itemIdentifier"] for each in answer["batchItemFailures"]]


NO_MESSAGE = ["", "[]", '{"sandbox_id": 5}', "{", "not json", message("sbx-../x"), "[" * 5_000]


def test_a_batch_looks_at_each_and_names_what_failed(
    world: World, monkeypatch: pytest.MonkeyPatch, logged: io.StringIO
) -> None:
    seen = []

    def look(sandbox_id: str) -> None:
        seen.append(sandbox_id)
        if sandbox_id == NOBODY:
            raise StoreBusy("CANARY")

    monkeypatch.setattr(world.router, "advance", look)
    other = "sbx-" + "b" * 26
    event = batch(message(NOBODY), message(other, tenant="CANARY"), *NO_MESSAGE, message(other))
    assert failed(event) == ["0", *(str(n + 2) for n in range(len(NO_MESSAGE)))]
    assert seen == [NOBODY, other, other]
    assert "CANARY" not in logged.getvalue()


@pytest.mark.case("A14")
def test_a_bad_message_between_good_ones_fails_only_itself(world: World) -> None:
    first, last = (box_to_destroy(world) for _ in range(2))
    event = batch(message(first), "not json", message(last))
    for _ in range(2):  # delivered again it changes nothing
        assert failed(event) == ["1"]
        assert {box.id for box in world.first.boxes.values() if box.deleted_by_us} == {
            "first-1",
            "first-2",
        }
        assert [op for op, _ in world.first.calls].count("destroy") == 2


def box_to_destroy(world: World) -> str:
    """A sandbox somebody wished away, and nobody has looked at since."""
    box = world.created()
    lifecycle = world.router._lives[Sandbox]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lifecycle, "advance", lambda sandbox_id: None)
        world.router.destroy("acme", box)
    return box


@pytest.mark.case("A14")
def test_a_batch_that_fails_whole_lists_all_and_does_not_raise(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(sandbox_id: str) -> None:
        raise StoreBusy

    monkeypatch.setattr(world.router, "advance", look)
    assert failed(batch(*[message(NOBODY)] * 3)) == ["0", "1", "2"]
    assert failed(batch("x")) == ["0"]


def test_a_message_about_a_snapshot_is_looked_at_too(world: World) -> None:
    asked = on("take_snapshot", world.created(), headers={"Prefer": "wait=0"})
    assert failed(batch(message(asked.json["id"]))) == []
    (shot,) = world.first.stored()
    assert shot.name is not None
    assert shot.name.startswith(asked.json["id"])


def test_a_message_for_nobody_does_nothing(world: World) -> None:
    answer = advance.handler({"Records": [record("1", json.dumps({"sandbox_id": NOBODY}))]}, None)
    assert answer == {"batchItemFailures": []}
    assert world.first.calls == []


def test_a_sweep_wakes_what_is_due_and_heals(world: World) -> None:
    world.created(ttl_seconds=30)
    assert sweep.handler({}, None) == {"sent": 1}
