"""Another tenant's snapshot is not there, on any route, nor to make a sandbox from."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.local.acceptance.deployment import eventually
from tests.security.target import Target, problem, showing
from tests.security.test_tenants import GUARDED, Operation, name

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("security")]
ABSENT = "snap-" + "a" * 26
OF_ONE = [operation for operation in GUARDED if "{snapshot_id}" in operation[1]]


@pytest.fixture(scope="module")
def box(target: Target) -> Iterator[dict[str, Any]]:
    made = target.create().json()
    yield made
    target.destroy(made["id"])


@pytest.fixture(scope="module")
def mine(target: Target, box: dict[str, Any]) -> Iterator[dict[str, Any]]:
    taken = target.api.post(f"/v1/sandboxes/{box['id']}/snapshots")
    assert taken.status_code == 201, taken.text
    yield taken.json()
    url = f"/v1/snapshots/{taken.json()['id']}"
    eventually(lambda: target.api.delete(url).status_code == 204, 15, every=0.2)


def test_the_document_has_routes_of_one_snapshot() -> None:
    assert len(OF_ONE) >= 2


@pytest.mark.parametrize("operation", OF_ONE, ids=name)
def test_anothers_snapshot_is_the_same_404_as_none_and_reaches_nobody(
    target: Target, box: dict[str, Any], mine: dict[str, Any], operation: Operation
) -> None:
    method, path, _ = operation
    last = target.last_call()

    def send(client: httpx.Client, some_id: str) -> httpx.Response:
        return client.request(method, path.format(snapshot_id=some_id))

    answers = [send(target.other, some) for some in (mine["id"], ABSENT, box["id"], "no-id")]
    assert [answer.status_code for answer in answers] == [404] * 4
    assert all(problem(answer) == problem(answers[0]) for answer in answers)
    assert len({frozenset(answer.headers) for answer in answers}) == 1
    assert send(target.api, ABSENT).status_code == 404
    assert target.calls(last) == []
    assert target.api.get(f"/v1/snapshots/{mine['id']}").json() == mine


def test_a_snapshot_is_no_sandbox_and_a_sandbox_no_snapshot(
    target: Target, box: dict[str, Any], mine: dict[str, Any]
) -> None:
    last = target.last_call()
    wrong = [("sandboxes", mine["id"]), ("snapshots", box["id"])]
    for kind, some_id in wrong:
        for method in ("GET", "DELETE"):
            assert target.api.request(method, f"/v1/{kind}/{some_id}").status_code == 404
    below = f"/v1/sandboxes/{box['id']}/snapshots/{mine['id']}"
    assert target.api.delete(below).status_code == 404  # not the sandbox, nor the snapshot
    assert target.calls(last) == []
    assert target.get(box["id"])["state"] == "running"


@pytest.mark.parametrize("path", ["/v1/sandboxes", "/v1/route"])
def test_anothers_snapshot_is_as_none_to_make_a_sandbox_from(
    target: Target, mine: dict[str, Any], path: str
) -> None:
    last = target.last_call()
    answers = [target.other.post(path, json={"snapshot_id": some}) for some in (mine["id"], ABSENT)]
    assert [answer.status_code for answer in answers] == [400, 400]
    assert problem(answers[0]) == problem(answers[1])
    assert [error["path"] for error in answers[0].json()["field_errors"]] == ["snapshot_id"]
    assert target.calls(last) == []


def test_a_list_shows_ones_own_and_a_cursor_is_its_tenants_and_its_lists(
    target: Target, box: dict[str, Any], mine: dict[str, Any]
) -> None:
    second = target.api.post(f"/v1/sandboxes/{box['id']}/snapshots").json()
    page = target.api.get("/v1/snapshots", params={"limit": 1}).json()
    assert [one["id"] for one in page["data"]] == [second["id"]]
    for query in ({}, {"state": "ready"}, {"sandbox_id": box["id"]}):
        assert target.other.get("/v1/snapshots", params=query).json()["data"] == []
    cursor = {"cursor": page["next_cursor"]}
    for stolen in (
        target.other.get("/v1/snapshots", params=cursor),
        target.api.get("/v1/sandboxes", params=cursor),
    ):
        assert (stolen.status_code, stolen.json()["code"]) == (400, "invalid_request")
    assert target.api.delete(f"/v1/snapshots/{second['id']}").status_code == 204


def over(target: Target, sandbox_id: str) -> bool:
    """Wish a sandbox's snapshots gone; are they?"""
    listed = target.api.get("/v1/snapshots", params={"sandbox_id": sandbox_id}).json()["data"]
    left = [one for one in listed if one["state"] != "failed"]
    return not [target.api.delete(f"/v1/snapshots/{one['id']}") for one in left]


def test_what_a_snapshot_says_and_leaves_has_no_secret_of_its_sandbox(target: Target) -> None:
    secret, key = f"CANARY-{uuid.uuid4().hex}", f"CANARY-{uuid.uuid4().hex}"
    made = target.create(env={"TOKEN": secret}).json()
    url = f"/v1/sandboxes/{made['id']}/snapshots"
    answers = []
    for fault in ("invalid", "garbage", None):
        if fault is not None:
            order = {"fault": fault, "op": "snapshot", "times": 1}
            assert target.host.post("/_host/faults", json=order).is_success
        given = {"Idempotency-Key": f"{key}-{fault}", "Prefer": "wait=1"}
        answers.append(target.api.post(url, json={"ttl_seconds": 60}, headers=given))
        target.host.delete("/_host/faults")
    told = {str(n): a.content + str(a.headers).encode() for n, a in enumerate(answers)}
    assert showing(told, [secret, key]) == []
    assert [answer.status_code for answer in answers] == [422, 202, 201]
    again = target.create(snapshot_id=answers[-1].json()["id"], env={"TOKEN": secret}).json()
    assert again["env_names"] == ["TOKEN"]
    for sandbox in (made, again):
        target.destroy(sandbox["id"])
    eventually(lambda: over(target, made["id"]), 60, every=0.5)  # later tests count calls
    assert showing(target.sinks(), [secret, key]) == []
