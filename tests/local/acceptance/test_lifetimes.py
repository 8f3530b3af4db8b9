"""Nothing outlives its lifetime: router up, router down over the deadline, router never back.

The scenes only wait, so one test plays them side by side.
"""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.local.acceptance.deployment import Deployment, eventually

pytestmark = pytest.mark.slow
LATE_SECONDS = 5.0
RESTART_SECONDS = 10.0
MARGIN_SECONDS = 60.0
"""How much longer than ours the provider's own limit is."""


def seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def gone(deployment: Deployment, instance_id: str, within: float) -> float:
    """When the provider had it gone, in seconds since the epoch."""

    def ended() -> float | None:
        (found,) = deployment.instances(alive=False, id=instance_id)
        return None if found["gone_ms"] is None else found["gone_ms"] / 1000

    return float(eventually(ended, within, every=0.25))


def destroyed(deployment: Deployment, box: dict[str, Any], within: float) -> None:
    eventually(lambda: deployment.get(box["id"])["state"] == "destroyed", within)


def many(deployment: Deployment) -> list[float]:
    """Lateness of a dozen sandboxes with lifetimes and phases of all kinds."""
    chance = random.Random(1)
    made = []
    for _ in range(12):
        time.sleep(chance.random() / 4)
        made.append(deployment.create(ttl_seconds=chance.randint(30, 59)).json())
    found = []
    for box in sorted(made, key=lambda box: str(box["expires_at"])):
        at = gone(deployment, box["instance_id"], 90)
        found.append(at - seconds(box["expires_at"]))
        destroyed(deployment, box, 5)
    return found


def extended(deployment: Deployment) -> list[float]:
    """Lateness after the end was moved, both ways."""
    found = []
    later, sooner = (deployment.create(ttl_seconds=ttl).json() for ttl in (30, 300))
    for box, change in [
        (later, {"ttl_seconds": 40}),
        (sooner, {"ttl_seconds": 35, "shorten": True}),
    ]:
        changed = deployment.api.patch(f"/v1/sandboxes/{box['id']}", json=change).json()
        found.append(seconds(changed["expires_at"]))
    ends = [gone(deployment, box["instance_id"], 60) for box in (later, sooner)]
    return [end - at for end, at in zip(ends, found, strict=True)]


def paused(deployment: Deployment) -> list[float]:
    """Lateness of a paused one."""
    box = deployment.create(ttl_seconds=30).json()
    assert deployment.api.post(f"/v1/sandboxes/{box['id']}/pause").status_code == 200
    return [gone(deployment, box["instance_id"], 60) - seconds(box["expires_at"])]


def down_over_the_deadline(deployment: Deployment) -> list[float]:
    """Seconds from the restart to the end of each."""
    made = [deployment.create(ttl_seconds=30).json() for _ in range(4)]
    deployment.signal(signal.SIGKILL)
    time.sleep(max(0.0, seconds(made[-1]["expires_at"]) + 3 - time.time()))
    assert len(deployment.instances()) == 4
    restarted = time.time()
    deployment.start()
    return [gone(deployment, box["instance_id"], 30) - restarted for box in made]


def snapshots(deployment: Deployment) -> list[float]:
    """Seconds from a restart after the deadline to the end of each: two whose router died while
    they were taken, and one that was ready.
    """
    boxes = [deployment.create(provider={"only": [pool]}).json() for pool in ("alpha", "gamma")]

    def take(box: dict[str, Any], wait: int) -> dict[str, Any]:
        url, prefer = f"/v1/sandboxes/{box['id']}/snapshots", {"Prefer": f"wait={wait}"}
        taken = deployment.api.post(url, json={"ttl_seconds": 60}, headers=prefer)
        return dict(taken.json())

    def kept() -> dict[str, str]:
        found = deployment.host.get("/_host/captures").json()["captures"]
        return {str(one["name"]).rpartition("-")[0]: one["state"] for one in found}

    ready = take(boxes[0], 20)
    with deployment.fault("slow_capture", seconds=3):
        made = [ready, *(take(box, 0) for box in boxes)]
        ids = {one["id"] for one in made}
        eventually(lambda: kept().keys() == ids, 3)
        deployment.signal(signal.SIGKILL)
    assert sorted(kept().values()) == ["creating", "creating", "ready"]
    time.sleep(max(0.0, seconds(made[-1]["expires_at"]) + 3 - time.time()))
    assert kept() == dict.fromkeys(ids, "ready")
    restarted, ends = time.time(), dict[str, float]()
    deployment.start()

    def ended() -> bool:
        for gone in ids - kept().keys():
            ends.setdefault(gone, time.time() - restarted)
        return ends.keys() == ids

    eventually(ended, 30)

    def told() -> bool:
        found = deployment.api.get("/v1/snapshots", params={"state": "deleted"}).json()["data"]
        return {(one["id"], one["state_reason"]) for one in found} == {(i, "expired") for i in ids}

    eventually(told, 10)
    return list(ends.values())


def never_back(deployment: Deployment) -> list[float]:
    """Lateness against the provider's own limit, with nobody left to destroy."""
    made = [deployment.create(ttl_seconds=30).json() for _ in range(2)]
    deployment.signal(signal.SIGKILL)
    ends = [gone(deployment, box["instance_id"], 120) for box in made]
    late = [
        end - seconds(box["expires_at"]) - MARGIN_SECONDS
        for end, box in zip(ends, made, strict=True)
    ]
    deployment.start()
    for box in made:
        destroyed(deployment, box, 10)
    return late


def too_late(deployment: Deployment) -> list[float]:
    """Seconds from the birth of an instance nobody waits for any more to its end."""
    with deployment.fault("late", account="alpha", op="create", seconds=45):
        answer = deployment.create(ttl_seconds=600)
        assert answer.status_code == 202, answer.text
        made = answer.json()["id"]
        eventually(lambda: deployment.get(made)["state"] == "running", 30, every=0.2)
        serving = deployment.get(made)
        assert [(a["pool_id"], a["outcome"]) for a in serving["attempts"]] == [
            ("alpha", "unknown"),
            ("beta", "created"),
        ]

        def born() -> list[dict[str, Any]]:
            return deployment.instances(alive=False, account="alpha")

        (late,) = eventually(born, 50)
        end = gone(deployment, late["id"], 60)
    assert deployment.get(made)["instance_id"] == serving["instance_id"]
    assert [one["id"] for one in deployment.instances()] == [serving["instance_id"]]

    def outcome() -> Any:
        return deployment.get(made)["attempts"][0]["outcome"]

    eventually(lambda: outcome() == "gone", 10)  # it is gone before the record can say so
    return [end - float(late["created_ms"]) / 1000]


Scene = Callable[[Deployment], list[float]]
BOUNDS: dict[Scene, tuple[float, float]] = {
    many: (-0.05, LATE_SECONDS),
    extended: (-0.05, LATE_SECONDS),
    paused: (-0.05, LATE_SECONDS),
    down_over_the_deadline: (0, RESTART_SECONDS),
    snapshots: (0, RESTART_SECONDS),
    never_back: (-1, LATE_SECONDS),
    too_late: (0, 15),
}


def test_nothing_outlives_its_lifetime_whether_the_router_is_up_late_or_gone(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    def play(scene: Scene) -> list[float]:
        folder = tmp_path / scene.__name__
        folder.mkdir()
        deployment = Deployment(folder)
        try:
            return scene(deployment.start())
        finally:
            deployment.end()

    with ThreadPoolExecutor(len(BOUNDS)) as threads:
        playing = {scene: threads.submit(play, scene) for scene in BOUNDS}
    seen = {scene: playing[scene].result() for scene in BOUNDS}
    for scene, late in seen.items():
        record_property(scene.__name__, late)
        print(f"{scene.__name__}: {[round(seconds, 2) for seconds in late]}")
    for scene, (low, high) in BOUNDS.items():
        assert all(low <= late <= high for late in seen[scene]), (scene.__name__, seen[scene])
