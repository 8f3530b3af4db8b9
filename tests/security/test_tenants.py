"""Another tenant's sandbox is not there, on any route; what is the server's is not a client's."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from infra import openapi
from tests.security.target import ABSENT, Target, problem

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("security")]

DOCUMENT: dict[str, Any] = json.loads(openapi.FILE.read_text())
Operation = tuple[str, str, dict[str, Any]]
OPERATIONS: list[Operation] = [
    (method.upper(), path, operation)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
]
GUARDED = [operation for operation in OPERATIONS if operation[2].get("security")]
OF_ONE = [operation for operation in GUARDED if "{id}" in operation[1]]
FILE = {"path": "/tmp/a"}
VALID: dict[str, Any] = {
    "exec": {"command": "id"},
    "{id}": {"labels": {}},
    "uploads": FILE,
    "downloads": FILE,
}
"""A valid JSON body, by the last part of the path; else an empty one will do."""
FILLED = {
    "port": "8080",
    "kind": "e2b",
    "path": "/tmp/a",
    "upload_id": "upl-" + "A" * 60,
    "snapshot_id": "snap-" + "a" * 26,
}
"""What other required parameters say. A new one makes these tests fail: a 400 is no 404."""


def content(operation: Operation) -> list[str]:
    return list(operation[2].get("requestBody", {}).get("content", {}))


def send(client: httpx.Client, operation: Operation, made: str, more: Any = None) -> httpx.Response:
    """A well-formed call of an operation; `more` goes into its JSON body."""
    method, path, document = operation
    given = {"id": made, **FILLED}
    needed = [p for p in document.get("parameters", []) if p.get("required")]
    query = {p["name"]: given[p["name"]] for p in needed if p["in"] == "query"}
    sent: dict[str, Any] = {}
    if "application/json" in content(operation):
        sent["json"] = {**VALID.get(path.rpartition("/")[2], {}), **(more or {})}
    elif content(operation):
        sent |= {"content": b"x", "headers": {"Content-Type": content(operation)[0]}}
    return client.request(method, path.format(**given), params=query, **sent)


def name(operation: object) -> str:
    assert isinstance(operation, tuple)
    return f"{operation[0]} {operation[1]}"


@pytest.fixture(scope="module")
def mine(target: Target) -> Iterator[dict[str, Any]]:
    box = target.create(labels={"whose": "mine"}).json()
    yield box
    target.destroy(box["id"])


def test_the_document_has_routes_of_one_sandbox() -> None:
    assert len(OF_ONE) >= 12


@pytest.mark.parametrize("operation", OF_ONE, ids=name)
def test_anothers_sandbox_is_the_same_404_as_none_and_reaches_nobody(
    target: Target, mine: dict[str, Any], operation: Operation
) -> None:
    last = target.last_call()
    answers = [send(target.other, operation, made) for made in (mine["id"], ABSENT, "no-id")]
    assert [answer.status_code for answer in answers] == [404] * 3
    assert problem(answers[0]) == problem(answers[1]) == problem(answers[2])
    headers = [set(answer.headers) for answer in answers]
    assert headers[0] == headers[1] == headers[2]
    assert target.calls(last) == []
    assert target.get(mine["id"])["state"] == "running"
    assert target.get(mine["id"])["labels"] == mine["labels"]


@pytest.mark.parametrize("operation", GUARDED, ids=name)
def test_without_a_key_or_with_it_in_the_query_nothing_is_answered(
    target: Target, mine: dict[str, Any], operation: Operation
) -> None:
    last = target.last_call()
    with httpx.Client(base_url=target.api.base_url) as nobody:
        plain = send(nobody, operation, mine["id"])
        nobody.params = nobody.params.set("key", target.other_key)
        queried = send(nobody, operation, mine["id"])
    for answer in (plain, queried):
        assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")
    assert target.calls(last) == []


def test_a_list_shows_ones_own_and_a_cursor_is_its_tenants(
    target: Target, mine: dict[str, Any]
) -> None:
    second = target.create().json()
    page = target.api.get("/v1/sandboxes", params={"limit": 1}).json()
    assert page["next_cursor"]
    for query in ({}, {"label": "whose=mine"}, {"state": "running"}):
        assert target.other.get("/v1/sandboxes", params=query).json()["data"] == []
    stolen = target.other.get("/v1/sandboxes", params={"cursor": page["next_cursor"]})
    assert (stolen.status_code, stolen.json()["code"]) == (400, "invalid_request")
    target.destroy(second["id"])


def test_a_guessed_idempotency_key_gives_nothing_of_anothers(target: Target) -> None:
    key = "1"
    first = target.create(key, env={"A": "b"})
    body, headers = {"ttl_seconds": 60}, {"Idempotency-Key": key}
    other = target.other.post("/v1/sandboxes", json=body, headers=headers)
    assert other.status_code == 201  # neither a replay nor a word about another body
    assert "idempotent-replayed" not in other.headers
    assert other.json()["id"] != first.json()["id"]
    assert target.other.delete(f"/v1/sandboxes/{other.json()['id']}").status_code in (202, 204)
    target.destroy(first.json()["id"])


SERVERS: dict[str, Any] = {
    "tenant": "other",
    "id": "sbx-" + "b" * 26,
    "state": "running",
    "created_at": "2030-01-01T00:00:00Z",
    "expires_at": "2999-01-01T00:00:00Z",
    "instance_id": "i-1",
    "provider_instance_id": "i-1",
    "pool_id": "alpha",
    "cost": {"per_hour": 0},
    "attempts": [],
    "request_id": "mine",
    "lease_until": 0,
    "__class__": "x",
    "constructor": "x",
}
WITH_JSON = [operation for operation in GUARDED if "application/json" in content(operation)]


@pytest.mark.parametrize("operation", WITH_JSON, ids=name)
def test_a_field_of_the_servers_is_an_unknown_field(
    target: Target, mine: dict[str, Any], operation: Operation
) -> None:
    last, before = target.last_call(), target.get(mine["id"])
    for field, value in SERVERS.items():
        answer = send(target.api, operation, mine["id"], {field: value})
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request"), field
        assert [error["path"] for error in answer.json()["field_errors"]] == [field]
    assert target.calls(last) == []
    after = target.get(mine["id"])
    assert after | {"cost": None} == before | {"cost": None}


@pytest.mark.parametrize("label", ["constal-tenant", "constal-account", "Constal-Sandbox-Id"])
def test_our_identity_at_the_provider_cannot_be_claimed_by_a_label(
    target: Target, mine: dict[str, Any], label: str
) -> None:
    body = {"labels": {label: uuid.uuid4().hex}}
    answers = [
        target.api.post("/v1/sandboxes", json=body),
        target.api.patch(f"/v1/sandboxes/{mine['id']}", json=body),
    ]
    assert [answer.status_code for answer in answers] == [400, 400]
