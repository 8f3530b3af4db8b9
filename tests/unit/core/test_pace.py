"""Whatever one operation of a provider keeps failing with, it is not asked without a pause."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from sandbox_router.lifecycle.snapshots import SnapshotRequest
from sandbox_router.model.failure import Failure
from tests.sim.world import TENANT
from tests.unit.core.scenes import Scene, Vendor

OPERATIONS = [
    *("create", "find", "get", "destroy", "extend", "pause", "resume"),
    *("capture", "find_capture", "get_capture", "destroy_capture"),
]
SECOND, MOST = 1_000, 8
"""Calls of all operations within a second; a life that goes well makes that many at most."""


def lived(scene: Scene) -> None:
    """A sandbox from its create to its end, with all that can be wished meanwhile."""

    def tried(call: Callable[[], Any], seconds: float) -> Any:
        with suppress(Failure):
            answer = call()
            scene.on(seconds)
            return answer

    router, asked = scene.router, SnapshotRequest("req-s", b"")
    box = tried(scene.ask, 5).record_id
    tried(lambda: router.get(TENANT, box, refresh=True), 5)
    tried(lambda: router.pause(TENANT, box), 5)
    tried(lambda: router.resume(TENANT, box), 5)
    tried(lambda: router.extend(TENANT, box, 7200, shorten=False), 5)
    shot = tried(lambda: router.take_snapshot(TENANT, box, asked, wait_seconds=20), 60)
    if shot is not None:
        tried(lambda: router.destroy_snapshot(TENANT, shot.record_id), 30)
    tried(lambda: router.destroy(TENANT, box), 200)


def fastest(vendor: Vendor) -> int:
    """The most calls within a second."""
    times = [at for _, at in vendor.at]
    return max((sum(at <= t < at + SECOND for t in times) for at in times), default=0)


@pytest.mark.parametrize("op", OPERATIONS)
@pytest.mark.parametrize("answer", ["outage", "rate_limited", "unauthorized", "cut"])
@pytest.mark.parametrize("idempotent", [True, False])
def test_nobody_is_asked_without_a_pause(op: str, answer: str, idempotent: bool) -> None:
    scene = Scene(idempotent=idempotent)
    for name in scene.providers:
        vendor = scene.vendor(name)
        vendor.boots_ms = vendor.captures_ms = 3_000
        vendor.script(op, *[answer] * 2_000)
    lived(scene)
    assert max(fastest(scene.vendor(name)) for name in scene.providers) <= MOST
