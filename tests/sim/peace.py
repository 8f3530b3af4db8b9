"""Liveness: faults stop, time passes, and everything is as it should be within its bound."""

from __future__ import annotations

from sandbox_router.model.sandbox import State
from tests.fakes.weak import Weak
from tests.sim.scenario import LEASE_MS, SWEEP_MS, WINDOW_MS
from tests.sim.world import WRITERS, World

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


def to_the_end(world: World) -> None:
    """Every deadline passes; nothing is left, anywhere."""
    horizon = max((b.expires_at for b in world.boxes()), default=0) - world.clock.now()
    world.settle(max(horizon, 0) + 2 * WINDOW_MS)
    if world.living() and "reconcile" in world.nets:
        world.run_until(world.clock.now() + FOUND_MS)
    world.check_end()
