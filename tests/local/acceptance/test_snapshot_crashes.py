"""The router dies right before each of its port calls while a snapshot is taken and deleted;
restart, retry, and there is one capture, then none.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import httpx
import pytest

from tests.local.acceptance.conftest import Deploy
from tests.local.acceptance.deployment import Deployment, eventually
from tests.local.acceptance.test_snapshots import end, made, take

pytestmark = pytest.mark.slow
KEY = "the-key"
READS = ("query", "get_capture")
FOUND = 10.0
SETTLED = 30.0
"""What nobody can settle is given up after 20 s; here it is told to go meanwhile."""


def called(deployment: Deployment) -> list[str]:
    """The port calls so far: which, without whose."""
    lines = (deployment.state / "calls").read_text().splitlines()
    return [line.rpartition(".")[2] for line in lines]


def points(deployment: Deployment, pool: str) -> tuple[list[int], list[int]]:
    """The numbers of the port calls that take a snapshot, and of those that delete it; of calls
    between which nothing changes only the first.
    """
    deployment.start(CRASH_AT="0")
    box = made(deployment, pool)
    first = len(called(deployment))
    snapshot = take(deployment, box, KEY)
    assert snapshot.status_code == 201, snapshot.text
    taken = len(called(deployment))
    deleted = deployment.api.delete(f"/v1/snapshots/{snapshot.json()['id']}")
    assert deleted.status_code == 204, deleted.text
    calls = called(deployment)
    kept = [n + 1 for n in range(first, len(calls)) if n == first or calls[n - 1] not in READS]
    return [n for n in kept if n <= taken], [n for n in kept if n > taken]


def told(deployment: Deployment, pool: str, at: int) -> dict[str, Any]:
    """Take and delete a snapshot until the router dies at this call; a new one; the sandbox."""
    deployment.start(CRASH_AT=str(at))
    box = made(deployment, pool)
    with suppress(httpx.TransportError):
        snapshot = take(deployment, box, KEY).json()
        deployment.api.delete(f"/v1/snapshots/{snapshot['id']}")
    assert deployment.ended(10) == -9, f"no crash at call {at}"
    deployment.start()
    return box


def retried(deployment: Deployment, pool: str, at: int) -> None:
    """The same request again has the same snapshot, once; deleted, nothing is left."""
    box = told(deployment, pool, at)
    kept = deployment.host.get("/_host/captures").json()["captures"]
    asked = len(deployment.calls(op="snapshot"))
    assert len(kept) <= asked <= 1
    answers = []

    def settled() -> bool:
        answers.append(take(deployment, box, KEY, Prefer="wait=1"))
        assert answers[-1].status_code in (201, 202), answers[-1].text
        return answers[-1].status_code == 201

    if not settled() and kept:  # where an intent was not sent, nobody can know that it was not
        eventually(settled, FOUND, every=0.2)
    (snapshot_id,) = {answer.json()["id"] for answer in answers}
    assert len(deployment.calls(op="snapshot")) <= 1
    end(deployment, {"id": snapshot_id}, SETTLED)
    listed = deployment.api.get("/v1/snapshots", params={"state": "creating,ready,deleted,failed"})
    assert [one["id"] for one in listed.json()["data"]] == [snapshot_id]
    assert deployment.get(box["id"])["state"] == "running"


def test_a_retry_after_any_crash_finds_one_snapshot_and_deletes_it(deploy: Deploy) -> None:
    counting = {pool: deploy() for pool in ("alpha", "gamma")}
    with ThreadPoolExecutor(2) as threads:
        found = dict(zip(counting, threads.map(points, counting.values(), counting), strict=True))
    (taking, deleting), (other, _) = found["alpha"], found["gamma"]
    assert len(taking) >= 3
    assert len(deleting) >= 3
    jobs = [("alpha", at) for at in (*taking, *deleting)]
    # The first calls are the same for every kind: these come when it is asked for, and not ready.
    jobs += [("gamma", at) for at in other[2:4]]
    made = [(deploy(), *job) for job in jobs]
    with ThreadPoolExecutor(len(made)) as threads:
        ran = {f"{p} {at}": threads.submit(retried, d, p, at) for d, p, at in made}
    failed = {name: job.exception() for name, job in ran.items() if job.exception()}
    assert failed == {}, f"of {len(ran)} points: {failed}"
