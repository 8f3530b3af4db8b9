"""Snapshots over HTTP, at both kinds of provider: taken once, outliving their sandbox, made into
new ones, gone for certain.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.local.acceptance.deployment import Deployment, eventually

pytestmark = pytest.mark.slow
POOLS = ("alpha", "gamma")
"""One of E2B, one of OpenSandbox."""


def made(deployment: Deployment, pool: str, **body: Any) -> dict[str, Any]:
    """A sandbox that runs in this pool."""
    answer = deployment.create(provider={"only": [pool]}, **body)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def take(deployment: Deployment, box: dict[str, Any], key: str, **more: str) -> httpx.Response:
    """POST …/snapshots, kept for as long as it may at least be."""
    headers = {"Idempotency-Key": key, **more}
    url = f"/v1/sandboxes/{box['id']}/snapshots"
    return deployment.api.post(url, json={"ttl_seconds": 60}, headers=headers)


def captures(deployment: Deployment, snapshot: dict[str, Any]) -> list[dict[str, Any]]:
    """What the host keeps of a snapshot."""
    found = deployment.host.get("/_host/captures").json()["captures"]
    return [one for one in found if str(one["name"]).startswith(snapshot["id"])]


def end(deployment: Deployment, snapshot: dict[str, Any], seconds: float = 15) -> None:
    """DELETE, and wait until it is confirmed."""
    url = f"/v1/snapshots/{snapshot['id']}"
    eventually(lambda: deployment.api.delete(url).status_code == 204, seconds, every=0.2)
    assert captures(deployment, snapshot) == []
    assert deployment.api.get(url).json()["state"] in ("deleted", "failed")


@pytest.mark.parametrize("pool", POOLS)
def test_a_file_outlives_its_sandbox_in_a_snapshot(shared: Deployment, pool: str) -> None:
    api, box = shared.api, made(shared, pool)
    file, octets = "files?path=/tmp/kept", {"Content-Type": "application/octet-stream"}
    for content in (b"before", b"as it was"):
        api.put(f"/v1/sandboxes/{box['id']}/{file}", content=content, headers=octets)
    taken = take(shared, box, f"story-{pool}")
    assert taken.status_code == 201, taken.text
    snapshot = taken.json()
    assert taken.headers["location"] == f"/v1/snapshots/{snapshot['id']}"
    assert (snapshot["state"], snapshot["pool_id"], snapshot["size"]) == (
        "ready",
        pool,
        box["size"],
    )
    assert shared.get(box["id"])["state"] == "running"
    api.put(f"/v1/sandboxes/{box['id']}/{file}", content=b"changed since", headers=octets)
    shared.destroy(box["id"])
    assert take(shared, box, f"story-{pool}").content == taken.content  # whatever became of it
    assert len(captures(shared, snapshot)) == 1

    again = shared.create(snapshot_id=snapshot["id"], env={"A": "b"})
    assert again.status_code == 201, again.text
    second = again.json()
    assert (second["pool_id"], second["size"]) == (pool, box["size"])
    assert api.get(f"/v1/sandboxes/{second['id']}/{file}").content == b"as it was"

    used = api.delete(f"/v1/snapshots/{snapshot['id']}")  # which the vendor refuses meanwhile
    assert (used.status_code, used.json()["state"]) == (202, "deleting")
    assert shared.create(snapshot_id=snapshot["id"]).status_code == 409
    assert api.get(f"/v1/sandboxes/{second['id']}/{file}").content == b"as it was"
    shared.destroy(second["id"])
    end(shared, snapshot)


def test_many_at_once_under_one_key_are_one_snapshot(shared: Deployment) -> None:
    box, last = made(shared, "alpha"), shared.last_call()
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda _: take(shared, box, "at-once"), range(8)))
    assert {answer.status_code for answer in answers} <= {201, 202}
    (snapshot_id,) = {answer.json()["id"] for answer in answers}
    settled = take(shared, box, "at-once")
    assert settled.status_code == 201
    assert {a.content for a in answers if a.status_code == 201} <= {settled.content}
    assert len(shared.calls(last, op="snapshot")) == 1
    end(shared, {"id": snapshot_id})
    shared.destroy(box["id"])


@pytest.mark.parametrize("pool", POOLS)
def test_one_that_is_deleted_while_it_is_taken_leaves_nothing(
    shared: Deployment, pool: str
) -> None:
    box = made(shared, pool)
    with shared.fault("slow_capture", account=pool, seconds=1):
        handed = take(shared, box, f"hasty-{pool}", Prefer="wait=0")
        assert handed.status_code == 202
        snapshot = handed.json()
        eventually(lambda: captures(shared, snapshot), 5)
        assert shared.api.delete(f"/v1/snapshots/{snapshot['id']}").status_code == 202
        end(shared, snapshot)
    gone = shared.api.get(f"/v1/snapshots/{snapshot['id']}").json()
    assert (gone["state"], gone["ready_at"]) == ("deleted", None)
    shared.destroy(box["id"])


LOST = {"lost_answer": 0.0, "made_503": 0.0, "late": 2.0}


def lost(deployment: Deployment, pool: str) -> dict[str, int]:
    """Every way an answer can be lost while the effect happens; captures and asks of each."""
    box = made(deployment, pool)
    found = {}
    for fault, seconds in LOST.items():
        last = deployment.last_call()
        with deployment.fault(fault, account=pool, op="snapshot", times=1, seconds=seconds):
            answer = take(deployment, box, f"{fault}-{pool}")
        assert answer.status_code == 201, (pool, fault, answer.text)
        snapshot = answer.json()
        assert [a["outcome"] for a in snapshot["attempts"]] == ["adopted"]
        asked = deployment.calls(last, op="snapshot", account=pool)
        found[fault] = len(captures(deployment, snapshot)) * len(asked)
        end(deployment, snapshot)
    deployment.destroy(box["id"])
    return found


def test_a_lost_answer_is_settled_on_one_capture(shared: Deployment) -> None:
    with ThreadPoolExecutor(2) as threads:
        found = list(threads.map(lambda pool: lost(shared, pool), POOLS))
    assert found == [dict.fromkeys(LOST, 1)] * 2


def test_what_the_provider_could_not_capture_has_failed_and_frees_its_key(
    shared: Deployment,
) -> None:
    box = made(shared, "gamma")
    with shared.fault("failed_capture", account="gamma", times=1):
        failed = take(shared, box, "failing")
    assert (failed.status_code, failed.json()["code"]) == (503, "provider_outage")
    listed = shared.api.get("/v1/snapshots", params={"state": "failed", "sandbox_id": box["id"]})
    (snapshot,) = listed.json()["data"]
    eventually(lambda: captures(shared, snapshot) == [], 10)
    second = take(shared, box, "failing")
    assert second.status_code == 201, second.text
    end(shared, second.json())
    shared.destroy(box["id"])


def test_a_snapshot_of_what_is_gone_says_so_and_shows_it(shared: Deployment) -> None:
    box = made(shared, "alpha")
    shared.host.post(f"/_host/instances/{box['instance_id']}/kill")
    answer = take(shared, box, "too-late")
    assert (answer.status_code, answer.json()["code"]) == (409, "instance_gone")
    eventually(lambda: shared.get(box["id"])["state"] == "lost", 15, every=0.2)


def test_a_refused_create_from_one_is_final_and_harms_it_not(shared: Deployment) -> None:
    box = made(shared, "gamma")
    snapshot = take(shared, box, "refused").json()
    with shared.fault("invalid", account="gamma", op="create", times=1):
        answer = shared.create(snapshot_id=snapshot["id"])
    assert (answer.status_code, answer.json()["code"]) == (422, "provider_rejected")
    second = shared.create(snapshot_id=snapshot["id"])  # which is still there
    assert second.status_code == 201, second.text
    for sandbox in (box, second.json()):
        shared.destroy(sandbox["id"])
    end(shared, snapshot)


@pytest.mark.parametrize("pool", POOLS)
def test_one_that_was_deleted_past_the_router_says_so(shared: Deployment, pool: str) -> None:
    box = made(shared, pool)
    snapshot = take(shared, box, f"lost-{pool}").json()
    forget(shared, pool, captures(shared, snapshot)[0])
    key = f"from-lost-{pool}"
    answer = shared.create(key, snapshot_id=snapshot["id"])
    assert (answer.status_code, answer.json()["code"]) == (422, "snapshot_gone")
    url = f"/v1/snapshots/{snapshot['id']}"
    eventually(lambda: shared.api.get(url).json()["state"] == "failed", 15, every=0.2)
    assert shared.api.get(url).json()["state_reason"] == "snapshot_gone"
    assert shared.create(key, snapshot_id=snapshot["id"]).content == answer.content
    assert shared.create(snapshot_id=snapshot["id"]).status_code == 409
    assert shared.api.delete(url).status_code == 204
    shared.destroy(box["id"])


def forget(deployment: Deployment, pool: str, capture: dict[str, Any]) -> None:
    """The operator deletes a capture in the vendor's own way."""
    accounts = json.loads((deployment.state / "host-accounts.json").read_text())["accounts"]
    key = next(account["key"] for account in accounts if account["name"] == pool)
    path, header = {
        "alpha": (f"/e2b/templates/{capture['name']}", "X-API-Key"),
        "gamma": (f"/opensandbox/v1/snapshots/{capture['id']}", "OPEN-SANDBOX-API-KEY"),
    }[pool]
    gone = deployment.host.delete(path, headers={header: key})
    assert gone.status_code == 204, gone.text
