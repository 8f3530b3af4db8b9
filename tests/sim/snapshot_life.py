"""A snapshot's life in a world: taken, retried, deleted or left to its end, whatever happens."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sandbox_router.lifecycle.once import Reply
from sandbox_router.lifecycle.snapshots import SnapshotRequest
from sandbox_router.model.failure import Failure
from sandbox_router.model.record import Outcome
from sandbox_router.model.snapshot import Snapshot, SnapshotState
from sandbox_router.router import Router
from sandbox_router.store import Store
from tests.fakes.provider import Shot
from tests.sim import moves, peace
from tests.sim.world import TENANT, WRITERS, World

TTL_S = 90
SOON_MS = 120_000
"""From a deadline or a wish to its end, after a crash: a lease, two sweeps."""
OVER_MS = 1_900_000
"""Every window has closed, and reconcile has looked twice after its grace."""
FAULTS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "ok": {},
    "lost": {"capture": ("lost",)},
    "late": {"capture": ("late",)},
    "cut": {"capture": ("cut",)},
    "refused": {"capture": ("rate_limited",)},
    "failed": {"capture": ("failed",)},
    "hides": {"capture": ("lost",), "find_capture": ("absent", "cut")},
    "keeps": {"destroy_capture": ("kept", "lost"), "get_capture": ("cut",)},
}


RIVALS = ("", "looks", "deletes", "reconciles", "retries")


@dataclass(frozen=True)
class Story:
    """What is done and what it meets. end: how it ends; crash: at which port call the process
    dies; rival: what another process does meanwhile, and at which one.
    """

    fault: str = "ok"
    end: str = "deleted"
    idempotent: bool = False
    weak: bool = False
    wait: float = 20.0
    slow_ms: int = 0
    crash: int = 0
    rival: str = ""
    rival_at: int = 0
    seed: int = 0


class Captured(World):
    """A world with a sandbox that runs, and a client that wants one snapshot of it."""

    def __init__(self, story: Story) -> None:
        weak = dict(moves.WEAK) if story.weak else None
        nets = WRITERS | {"reconcile", "guard"}
        super().__init__(
            names=("alpha",),
            idempotent=story.idempotent,
            lag_ms=2_000,
            weak=weak,
            seed=story.seed,
            limits=False,
            nets=nets,
        )
        self.vendor = self.providers["alpha"]
        self.vendor.captures_repeat = story.idempotent
        self.vendor.captures_ms = story.slow_ms
        self.replies: list[Reply] = []
        self.gone: set[str] = set()
        while (made := self.create(None, ttl=7_200)) is None or made.status != 201:
            self.run_until(self.clock.now() + 1_000)
        self.source = made.record_id or ""
        for op, faults in FAULTS[story.fault].items():
            self.vendor.script(op, *faults)

    def take(self, wait: float, process: Router | None = None) -> None:
        """The client's request, under its one key."""
        request = SnapshotRequest("req-s", b"body", ttl_seconds=TTL_S, key="s1")
        router = process or self.router

        def call() -> Reply:
            return router.take_snapshot(TENANT, self.source, request, wait_seconds=wait)

        reply = self._told(call)
        if isinstance(reply, Reply):
            self.replies.append(reply)

    def delete(self) -> None:
        """The client's DELETE of every snapshot it knows."""
        for found in self.snapshots():
            ended = self._told(lambda f=found: self.router.destroy_snapshot(TENANT, f.id))  # type: ignore[misc]
            if isinstance(ended, Snapshot) and ended.state is SnapshotState.DELETED:
                self.gone.add(found.id)

    def _told(self, call: Callable[[], Any]) -> Any:
        try:
            return self.guarded(call)
        except Failure:
            return None

    def snapshots(self) -> list[Snapshot]:
        """Every record as it is stored."""
        items = [i for i in self.memory.items() if str(i["pk"]).startswith("SNAP#")]
        store = Store(self.memory, self.clock, self.ids)
        loaded = (store.load(Snapshot, str(i["id"])) for i in items if i["sk"] == "A")
        return [found for found in loaded if found is not None]

    def check(self) -> None:
        """What holds at every moment."""
        super().check()
        now, shots = self.clock.now(), self.vendor.shots
        names = Counter(shot.name for shot in shots.values())
        assert max(names.values(), default=0) <= 1, "two captures of one snapshot"
        for found in self.snapshots():
            attempt = found.current
            known = shots.get(found.capture_id)
            if found.state is SnapshotState.READY and now < found.expires_at:
                assert known is not None, "ready, and there is nothing"
                assert known.alive(now), "ready, and gone"
                assert known.state(now) == "ready", "ready before it was"
            if attempt is not None and attempt.outcome is Outcome.GONE and known is not None:
                assert not known.alive(now), "confirmed gone, and there"
            if found.state is SnapshotState.DELETED and attempt is not None and attempt.alive:
                appeared, ended = attempt.ended_at or 0, found.ended_at or 0
                assert appeared >= ended, "deleted, and known to be there"
            assert found.state_reason != "expired" or now >= found.expires_at

    def check_snapshots_end(self) -> None:
        """What holds when every window has closed."""
        assert self.kept() == [], "a capture outlived its record"
        for found in self.snapshots():
            assert found.over, f"{found.state} for ever"
            assert found.settled, "finished with an attempt open"
            assert found.due_at is None, "finished, and due"
        good = {reply.body for reply in self.replies if reply.status == 201}
        assert len(good) <= 1, "a retry got another answer"
        taken = {reply.record_id for reply in self.replies if reply.status in (201, 202)}
        asked = Counter(name for op, name in self.vendor.calls if op == "capture")
        if not self.vendor.captures_repeat:
            assert max(asked.values(), default=0) <= 1, "asked again, where a repeat is a second"
        assert taken <= {found.id for found in self.snapshots()}

    def quiet(self) -> bool:
        """Is everything settled, and nothing on its way?"""
        coming = any(shot.dead_at is None for shot in self.vendor.shots.values())
        return not coming and all(found.over and found.settled for found in self.snapshots())

    def kept(self) -> list[Shot]:
        """Captures that exist now."""
        return self.vendor.stored()


def told(story: Story) -> Captured:
    """The story to its end."""
    world = Captured(story)
    start = world.ticks
    if story.crash:
        world.crash_at = start + story.crash
    if story.rival:
        world.rival = (start + story.rival_at, lambda: _acts(world, story.rival))
    world.take(story.wait)
    world.check()
    world.run_until(world.clock.now() + 1_000)
    world.take(story.wait)
    world.run_until(world.clock.now() + 5_000)
    if story.end == "deleted":
        world.delete()
    peace_from = world.clock.now()
    world.run_until(peace_from + 40_000)
    world.take(0)
    peace.heal(world)
    if story.end == "deleted":
        world.delete()
    world.run_until(max(world.clock.now(), peace_from + TTL_S * 1_000) + SOON_MS)
    late = [shot for shot in world.kept() if world.clock.now() - shot.born_at > SOON_MS]
    assert late == [], "alive after its end"
    if not world.quiet():
        world.run_until(world.clock.now() + OVER_MS)
    world.check_snapshots_end()
    return world


def _acts(world: Captured, rival: str) -> None:
    """Another process does something at this moment."""
    process = world.process()
    for found in world.snapshots():
        try:
            if rival == "deletes":
                process.destroy_snapshot(TENANT, found.id)
            else:
                process.advance(found.id)
        except Failure:
            pass
    if rival == "reconciles":
        process.reconcile()
    if rival == "retries":
        world.take(2.0, process)


def chosen(seed: int) -> Story:
    """Any story."""
    chance = random.Random(seed)
    return Story(
        fault=chance.choice(sorted(FAULTS)),
        end=chance.choice(("deleted", "expired")),
        idempotent=chance.random() < 0.5,
        weak=chance.random() < 0.5,
        wait=chance.choice((0.0, 2.0, 20.0)),
        slow_ms=chance.choice((0, 0, 3_000, 30_000)),
        crash=chance.choice((0, chance.randint(1, 60))),
        rival=chance.choice(RIVALS),
        rival_at=chance.randint(1, 40),
        seed=seed,
    )
