"""What must hold of snapshots: no capture without a record, one each, surely gone in the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from sandbox_router.model.naming import snapshot_of
from sandbox_router.model.record import Outcome
from sandbox_router.model.snapshot import Snapshot, SnapshotState
from tests.fakes.provider import FakeProvider, Shot
from tests.sim.history import Event

Vendors = Mapping[str, FakeProvider]


def named(deployment: str, shot: Shot) -> str | None:
    """The snapshot a capture's name says it is of."""
    return snapshot_of(deployment, shot.name)


def made_of(vendors: Vendors, shot_id: str) -> list[int | None]:
    """When what was made of a capture ends; None: it lives."""
    return [
        box.dead_at
        for vendor in vendors.values()
        for box in vendor.boxes.values()
        if box.order.from_capture and box.order.reference == shot_id
    ]


def check_record(box: Snapshot, vendors: Vendors, now: int, skew_ms: int) -> None:
    """What holds for a snapshot's record at every moment."""
    assert len(box.attempts) <= 1, "a snapshot was asked for under two names"
    for attempt in box.attempts:
        assert attempt.pool_id == box.pool_id, "I27: a capture at another pool"
        shot = vendors[attempt.pool_id].shots.get(attempt.instance_id or "")
        if attempt.outcome is Outcome.GONE and shot is not None:
            assert not shot.alive(now), "confirmed gone, and there"
    if box.state is SnapshotState.READY and now < box.expires_at:
        shot = vendors[box.pool_id].shots[box.capture_id]
        assert shot.instance_id == box.instance_id, "a capture of something else"
        assert not shot.deleted_by_us or box.wish_destroy is not None, "what was kept was destroyed"
        assert now >= shot.ready_at, "I21: called ready before it was"
        assert not shot.fails, "I21: called ready, and it failed"
    if box.state_reason == "expired":
        assert now + skew_ms >= box.expires_at, "I19: expired before its time"


def check_quiet(box: Snapshot, deployment: str, vendors: Vendors) -> None:
    """What holds a while after the last fault: one capture where it is ready, else none."""
    stored = [shot for vendor in vendors.values() for shot in vendor.stored()]
    there = [shot for shot in stored if named(deployment, shot) == box.id]
    assert len(there) <= 1, "I3: two captures of one snapshot"
    if box.over:
        assert not there, f"I8: {box.state}, and its capture is there"


def held(vendors: Vendors, shot_id: str) -> bool:
    """A vendor does not end what something was made of that lives, or did a moment ago."""
    return bool(made_of(vendors, shot_id))


def check_calls(vendors: Vendors, upsets: int) -> None:
    """I28: how often we asked. `upsets`: as of creates."""
    for vendor in vendors.values():
        asked = Counter(subject for op, subject in vendor.calls if op == "capture")
        assert max(asked.values(), default=0) <= 2 + upsets, "I28: captured again and again"


def final(boxes: Iterable[Snapshot], stored: Iterable[Shot], t: float) -> Iterator[Event]:
    """What an observer sees of snapshots when all is quiet."""
    for box in boxes:
        state = str(box.state)
        yield Event("seen", "get", t, tenant=box.tenant, sandbox=box.id, state=state)
    for shot in stored:
        snapshot_id = shot.name.rpartition("-")[0]
        yield Event("alive", "list", t, sandbox=snapshot_id, instance=shot.id)


def told(boxes: Iterable[Snapshot], vendors: Vendors, seen: Counter[str]) -> None:
    """The situations snapshots were in."""
    for box in boxes:
        ready, over = box.started_at is not None, box.over
        seen["a snapshot was ready"] += ready
        seen["a snapshot failed"] += over and not ready and box.state is SnapshotState.FAILED
        seen["a snapshot expired"] += box.state_reason == "expired"
        seen["a snapshot was destroyed while it was made"] += (
            box.state is SnapshotState.DELETED and not ready and box.state_reason == "client"
        )
        never = (a for a in box.attempts if a.outcome is Outcome.GONE and a.instance_id is None)
        seen["a snapshot's capture never appeared"] += any(a.asked for a in never)
    for vendor in vendors.values():
        shots = vendor.shots.values()
        seen["a late capture was destroyed"] += any(s.late and s.deleted_by_us for s in shots)
        copies = [box for box in vendor.boxes.values() if box.order.from_capture]
        seen["a sandbox was made of a snapshot"] += bool(copies)
        outlived = any(_outlived(vendor, shot) for shot in shots)
        seen["a capture was held by what was made of it"] += outlived


def _outlived(vendor: FakeProvider, shot: Shot) -> bool:
    ends = made_of({vendor.name: vendor}, shot.id)
    return shot.dead_at is not None and any(e is not None and e <= shot.dead_at for e in ends)
