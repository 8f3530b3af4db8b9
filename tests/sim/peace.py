"""Liveness: faults stop, time passes, and everything is as it should be within its bound."""

from __future__ import annotations

from collections.abc import Collection

from sandbox_router.model.sandbox import Sandbox, State
from sandbox_router.model.snapshot import Snapshot, SnapshotState
from tests.fakes.weak import Weak
from tests.sim import captures
from tests.sim.scenario import LEASE_MS, SWEEP_MS, WINDOW_MS
from tests.sim.world import DEPLOYMENT, RECONCILE_MS, WRITERS, World

SOON_MS = LEASE_MS + 2 * SWEEP_MS + 60_000
"""After the last fault: a lease to its end, a sweep, the longest pause between two destroys."""
FOUND_MS = 16 * SWEEP_MS
"""Until reconcile has destroyed what no record names."""
ON_THE_WAY = (State.PAUSING, State.RESUMING, State.DESTROYING)


def heal(world: World) -> None:
    """The last fault ends here."""
    world.crash_at = world.rival = None
    world.crash_next.clear()
    world.nets |= WRITERS
    for provider in world.providers.values():
        provider.faults.clear()
    if isinstance(world.weak, Weak):
        world.weak.contended = world.weak.lost = world.weak.throttled = 0.0
        world.weak.reads.clear()
        world.weak.writes.clear()


def in_time(world: World) -> None:
    """What a short while after the last fault must be true."""
    world.run_until(world.clock.now() + SOON_MS)
    now = world.clock.now()
    wished = {e.sandbox for e in world.history if (e.kind, e.op) == ("ok", "destroy")}
    for box in world.boxes():
        over = now >= box.expires_at + SOON_MS
        if box.wish_destroy is not None or box.id in wished or over:
            assert box.state.terminal, f"I18: {box.state} after a destroy or its deadline"
            assert not any(a.alive for a in box.attempts), "I9: alive after its end"
        assert box.state not in ON_THE_WAY, f"{box.state} long after the last fault"
        late = now >= box.create_until + SOON_MS
        assert box.state is not State.STARTING or not late, "starting after its deadline"
        quiet = box.lease_until <= now and (box.due_at is None or box.due_at > now - SOON_MS)
        assert quiet, "a lease or a due date that nobody saw to"

    for shot in world.shots():
        _shot_in_time(world, shot, wished)
    if "reconcile" in world.nets:
        world.run_until(world.clock.now() + RECONCILE_MS)
        for box in world.boxes():
            _is_told_as_it_is(world, box)


def _is_told_as_it_is(world: World, box: Sandbox) -> None:
    """A vendor stops or starts: seen at the next reconcile. What it loses shows in no list."""
    if box.server is None or box.state not in (State.RUNNING, State.PAUSED):
        return
    instance = world.providers[box.server.pool_id].boxes[box.server.instance_id or ""]
    if instance.alive(world.clock.now()):
        runs = instance.state == "running"
        assert runs is (box.state is State.RUNNING), f"{box.state}, and it is {instance.state}"


def _shot_in_time(world: World, shot: Snapshot, wished: Collection[str | None]) -> None:
    """A capture that something lives of is there until that ends: its vendor keeps it."""
    now = world.clock.now()
    if captures.held(world.providers, shot.capture_id):
        return
    captures.check_quiet(shot, DEPLOYMENT, world.providers)
    if shot.wish_destroy is not None or shot.id in wished or now >= shot.expires_at + SOON_MS:
        assert shot.over, f"I18: {shot.state} after a destroy or its deadline"
    assert shot.state is not SnapshotState.DELETING, "deleting long after the last fault"
    late = now >= shot.create_until + SOON_MS
    assert shot.state is not SnapshotState.CREATING or not late, "creating after its deadline"
    quiet = shot.lease_until <= now and (shot.due_at is None or shot.due_at > now - SOON_MS)
    assert quiet, "a lease or a due date that nobody saw to"


def to_the_end(world: World) -> None:
    """Every deadline passes; nothing is left, anywhere."""
    horizon = max((r.expires_at for r in world.records()), default=0) - world.clock.now()
    world.settle(max(horizon, 0) + 2 * WINDOW_MS)
    if (world.living() or world.stored()) and "reconcile" in world.nets:
        world.run_until(world.clock.now() + FOUND_MS)
    world.check_end()
