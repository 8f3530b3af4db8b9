"""What was made and is not ready is looked at ever more rarely, whatever the provider answers."""

from __future__ import annotations

import pytest

from sandbox_router.lifecycle.snapshots import SnapshotRequest
from tests.sim.world import TENANT
from tests.unit.core.scenes import Scene, Vendor

PAUSES = [0, 500, 1_000, 1_500, 2_000, 3_000, 4_000, 6_000, 8_000]
"""When it is looked at, in ms from its create on."""
ANSWERS = ["ok", "outage", "rate_limited", "cut", "unauthorized"]


def looks(vendor: Vendor, op: str) -> list[int]:
    """When it was looked at, counted from the first time."""
    times = vendor.times(op)
    return [at - times[0] for at in times]


@pytest.mark.parametrize("answer", ANSWERS)
def test_a_sandbox_that_starts(answer: str) -> None:
    scene = Scene()
    vendor = scene.vendor()
    vendor.boots_ms = 8_000
    vendor.script("get", *[answer] * 8)
    assert scene.ask().status == 201
    assert looks(vendor, "get") == PAUSES


@pytest.mark.parametrize("answer", ANSWERS)
def test_a_snapshot_that_is_creating(answer: str) -> None:
    scene = Scene()
    box, vendor = scene.made(), scene.vendor()
    vendor.captures_ms = 8_000
    vendor.script("get_capture", *[answer] * 8)
    request = SnapshotRequest(request_id="r", fingerprint=b"")
    assert scene.router.take_snapshot(TENANT, box.id, request, wait_seconds=20).status == 201
    assert looks(vendor, "get_capture") == PAUSES
