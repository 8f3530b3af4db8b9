"""Scenarios about snapshots: one is taken, asked for again, made a sandbox of, and ends."""

from __future__ import annotations

from dataclasses import dataclass

from sandbox_router.model.snapshot import SnapshotState
from tests.fakes.provider import Shot
from tests.sim.captures import named
from tests.sim.scenario import (
    BOUNDS_MS,
    FAULT_MS,
    LEASE_MS,
    SWEEP_MS,
    Scenario,
    check_instances,
    finish,
    prepared,
)
from tests.sim.world import DEPLOYMENT, RECONCILE_MS, World

HELD_MS = 301_000
"""How long after its last copy a capture may be there: the longest pause between two destroys."""
CAPTURE = (
    *("ok", "lost", "cut", "late", "slow", "failed", "capacity", "conflict", "forbidden"),
    *("unauthorized", "lost capacity", "lost conflict", "gone"),
)
"""What the captures of the first pool meet, one after the other."""
CAPTURE_FAULTS = (
    *("find_capture:cut find_capture:absent", "", "get_capture:cut get_capture:outage"),
    *("destroy_capture:cut", "destroy_capture:lost destroy_capture:conflict"),
    *("destroy_capture:kept destroy_capture:kept", "destroy_capture:unauthorized get_capture:cut"),
    "captures:absent captures:cut",
)
"""The first is for lives in which somebody looks in time: where one net comes alone, when the
window has closed, its one look would not show what is there, and close the debt.
"""
ENDS = ("", "wish", "source", "copy", "copy wish", "source wish")
"""What clients do with one: end it, end the sandbox it is of, make another of it."""


@dataclass(frozen=True)
class Capturing(Scenario):
    """shot: what its capture meets. shots_ms: how long it is in the making. again: the client asks
    for it again, after so many seconds. ends: what clients do then. shot_ttl, shot_wait: seconds.
    """

    shot: str = "ok"
    shots_ms: int = 0
    again: int | None = None
    ends: str = ""
    shot_ttl: int = 60
    shot_wait: float = 20.0

    def run(self) -> World:
        """Run to the end and check everything."""
        world = prepared(self)
        for provider in world.providers.values():
            provider.captures_ms, provider.captures_page = self.shots_ms, 1
        world.providers["alpha"].script("capture", *self.shot.split())
        world.create(ttl=self.ttl)
        self._take(world)
        if self.again is not None:
            world.run_until(world.clock.now() + self.again * 1000)
            self._take(world)
        for verb in self.ends.split():
            self._do(world, verb)
            world.check()
        finish(world, self.nets)
        check_instances(world, self)
        self._check_shots(world)
        return world

    def _take(self, world: World) -> None:
        for box in world.boxes():
            world.take_snapshot(box, ttl=self.shot_ttl, wait=self.shot_wait)
            world.check()

    def _do(self, world: World, verb: str) -> None:
        match verb:
            case "wish":
                for shot in world.shots():
                    world.destroy(shot.id)
            case "source":
                for box in world.boxes():
                    world.destroy(box.id)
            case _:
                for shot in world.shots():
                    if shot.state is SnapshotState.READY:
                        world.create(None, ttl=45, of=shot.id)

    def _check_shots(self, world: World) -> None:
        """I9: how long each capture was there, past its end or that of what was made of it."""
        ends = {shot.id: shot.expires_at for shot in world.shots()}
        late = BOUNDS_MS[self.nets] + FAULT_MS * len(self.faults.split())
        late += 0 if self.shot == "ok" else FAULT_MS
        if self.nets == "reconcile":
            late += RECONCILE_MS * len(self.faults.split())
        if world.crashes or world.rivals:
            late += LEASE_MS + SWEEP_MS + (RECONCILE_MS if self.nets == "reconcile" else 0)
        for vendor in world.providers.values():
            for shot in vendor.shots.values():
                assert shot.dead_at is not None, "I8: a capture for ever"
                end = max(ends[named(DEPLOYMENT, shot) or ""], _copies_end(world, shot))
                assert shot.dead_at <= end + late, f"I9: {(shot.dead_at - end) / 1000} s late"


def _copies_end(world: World, shot: Shot) -> int:
    boxes = (box for vendor in world.providers.values() for box in vendor.boxes.values())
    ends = (b.dead_at or 0 for b in boxes if b.order.from_capture and b.order.reference == shot.id)
    return max((end + HELD_MS for end in ends), default=0)
