"""Each net alone ends what has expired, the others switched off; how late it is, is printed.

The scenes mostly wait, so one test plays them side by side. What ended an instance is the host's
word: `deleted` when the router did, `lifetime` when the host's own limit did.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.local.acceptance.deployment import Deployment, eventually
from tests.local.acceptance.test_lifetimes import MARGIN_SECONDS, gone, seconds
from tests.local.chaos.hurried import GRACE_SECONDS, PERIOD_SECONDS

pytestmark = pytest.mark.slow
SWEEP_SECONDS = 60.0
OVERDUE_SECONDS = 60.0
LATE_SECONDS = 5.0
HURRIED = [sys.executable, "-m", "tests.local.chaos.hurried"]


def killed(deployment: Deployment, *files: str) -> None:
    """The router dies, and files of its state are lost with it."""
    deployment.signal(signal.SIGKILL)
    for name in files:
        for path in deployment.state.glob(f"{name}*"):
            path.unlink()


def ended(deployment: Deployment, instance_id: str, within: float, by: str = "deleted") -> float:
    """When it went, and that it was the right net."""
    at = gone(deployment, instance_id, within)
    (found,) = deployment.instances(alive=False, id=instance_id)
    assert found["gone_reason"] == by
    return at


def late(deployment: Deployment, box: dict[str, Any], within: float, by: str = "deleted") -> float:
    """Seconds after its deadline."""
    until = seconds(box["expires_at"]) - time.time() + within
    return ended(deployment, box["instance_id"], until, by) - seconds(box["expires_at"])


def queue(deployment: Deployment) -> list[float]:
    """The message its writer sent, and one sent before the router died."""
    deployment.start(NETS="queue")
    first = deployment.create(ttl_seconds=30).json()
    killed(deployment)
    deployment.start(NETS="queue")
    second = deployment.create(ttl_seconds=30).json()
    return [late(deployment, box, 30) for box in (first, second)]


def sweep(deployment: Deployment) -> list[float]:
    """No message of a writer arrives. The least lifetime is due halfway between two sweeps."""
    deployment.start(NETS="sweep")
    boxes = [deployment.create(ttl_seconds=ttl).json() for ttl in (30, 31, 45)]
    return [late(deployment, box, 120) for box in boxes]


def sweep_after_a_lost_queue(deployment: Deployment) -> list[float]:
    """The queue's file is lost with the router."""
    deployment.start()
    box = deployment.create(ttl_seconds=30).json()
    killed(deployment, "queue.db")
    deployment.start(NETS="sweep")
    return [late(deployment, box, 120)]


def reconcile(deployment: Deployment) -> list[float]:
    """A record whose time came and whom nobody woke; paused, so that the host's limit is off."""
    deployment.command = HURRIED
    deployment.start(NETS="reconcile")
    box = deployment.create(ttl_seconds=30).json()
    assert deployment.api.post(f"/v1/sandboxes/{box['id']}/pause").status_code == 200
    found = late(deployment, box, 120)
    eventually(lambda: deployment.get(box["id"])["state"] == "destroyed", 5)
    return [found]


def reconcile_without_records(deployment: Deployment) -> list[float]:
    """Seconds from the start that found instances of no record to the end of each."""
    deployment.start()
    boxes = [deployment.create(ttl_seconds=600).json() for _ in range(3)]
    killed(deployment, "router.db", "queue.db")
    deployment.command = HURRIED
    began = time.time()
    deployment.start(NETS="reconcile")
    mine = deployment.create(ttl_seconds=600).json()
    found = [ended(deployment, box["instance_id"], 60) - began for box in boxes]
    assert [one["id"] for one in deployment.instances()] == [mine["instance_id"]]
    return found


def provider(deployment: Deployment) -> list[float]:
    """The router never comes back."""
    deployment.start()
    boxes = [deployment.create(ttl_seconds=30).json() for _ in range(2)]
    killed(deployment)
    return [late(deployment, box, 120, by="lifetime") for box in boxes]


Scene = Callable[[Deployment], list[float]]
BOUNDS: dict[Scene, float] = {
    queue: LATE_SECONDS,
    sweep: SWEEP_SECONDS,
    sweep_after_a_lost_queue: LATE_SECONDS,
    reconcile: OVERDUE_SECONDS + PERIOD_SECONDS + LATE_SECONDS,
    reconcile_without_records: GRACE_SECONDS + 2 * PERIOD_SECONDS + LATE_SECONDS,
    provider: MARGIN_SECONDS + LATE_SECONDS,
}


def test_each_net_alone_ends_what_has_expired_within_its_bound(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    def play(scene: Scene) -> list[float]:
        folder = tmp_path / scene.__name__
        folder.mkdir()
        deployment = Deployment(folder)
        try:
            return scene(deployment)
        finally:
            deployment.end()

    with ThreadPoolExecutor(len(BOUNDS)) as threads:
        playing = {scene: threads.submit(play, scene) for scene in BOUNDS}
    seen = {scene: playing[scene].result() for scene in BOUNDS}
    for scene, measured in seen.items():
        record_property(scene.__name__, measured)
        print(f"{scene.__name__}: {[round(s, 2) for s in measured]}, bound {BOUNDS[scene]:.0f} s")
    for scene, bound in BOUNDS.items():
        assert all(-0.05 <= found <= bound for found in seen[scene]), (scene.__name__, seen[scene])
