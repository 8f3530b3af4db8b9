"""A simulated vendor account that can capture its instances."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from sandbox_router.model.failure import CaptureGone, Conflicted, Unknown
from sandbox_router.ports import Capture, CapturePage, CaptureState, Order
from tests.fakes.account import KINDS, Box, FakeAccount


@dataclass
class Shot:
    """One simulated capture; it appears at `born_at` and is gone from `dead_at` on."""

    id: str
    name: str
    instance_id: str
    contents: str
    born_at: int
    ready_at: int
    fails: bool = False
    late: bool = False
    dead_at: int | None = None
    deleted_by_us: bool = False

    def alive(self, now: int) -> bool:
        """Does it exist (and bill) now?"""
        return self.born_at <= now and (self.dead_at is None or now < self.dead_at)

    def state(self, now: int) -> CaptureState:
        """What the vendor says of it."""
        if now < self.ready_at:
            return "creating"
        return "failed" if self.fails else "ready"


@dataclass
class FakeProvider(FakeAccount):
    """`ports.Provider` and `ports.Snapshots`. A capture outlives its source.

    Its operations meet the account's faults, and `capture` one more: `failed` (accepted, and never
    ready). captures_repeat: a repeat under one name finds the first. captures_ms: how long one is
    `creating`. captures_page: how many a page of the list shows. captures_stop: taking one stops
    its source. captures_held: as at E2B and OpenSandbox, one does not go while what was made of it
    lives.
    """

    kinds = KINDS | {"failed"}
    captures_repeat: bool = True
    captures_ms: int = 0
    captures_page: int = 100
    captures_stop: bool = False
    captures_held: bool = True
    on_capture: Callable[[str], None] = lambda name: None
    shots: dict[str, Shot] = field(default_factory=dict)

    def stored(self) -> list[Shot]:
        """Captures that exist now."""
        return [shot for shot in self.shots.values() if shot.alive(self.clock.now())]

    def capture(self, instance_id: str, name: str, contents: str, *, timeout: float) -> Capture:
        self.on_capture(name)
        fault = self._called("capture", name)
        source = self._there(instance_id)
        known = next(self._under(instance_id, name), None) if self.captures_repeat else None
        shot = known or self._taken(instance_id, name, contents, fault)
        if self.captures_stop:
            source.state = "stopped"
        self.tick(f"{self.name}.capture.done")
        if fault in ("lost", "late"):
            raise Unknown
        if fault == "slow":
            self._slowly(timeout)
        if not shot.alive(self.clock.now()):
            raise Unknown
        return self._described(shot)

    def find_capture(self, instance_id: str, name: str) -> Capture | None:
        if self._called("find_capture", name) == "absent":
            return None
        found = (s for s in self._under(instance_id, name) if self._listed(s))
        return next(map(self._described, found), None)

    def get_capture(self, capture_id: str) -> Capture | None:
        if self._called("get_capture", capture_id) == "absent":
            return None
        shot = self.shots.get(capture_id)
        return self._described(shot) if shot and shot.alive(self.clock.now()) else None

    def destroy_capture(self, capture_id: str) -> None:
        fault = self._called("destroy_capture", capture_id)
        if self.captures_held and any(_made_of(box, capture_id) for box in self.living()):
            raise Conflicted
        shot = self.shots.get(capture_id)
        if shot and shot.alive(self.clock.now()) and fault != "kept":
            shot.dead_at, shot.deleted_by_us = self.clock.now(), True
        self.tick(f"{self.name}.destroy_capture.done")
        if fault == "lost":
            raise Unknown

    def captures(self, cursor: str | None) -> CapturePage:
        if self._called("captures", cursor or "") == "absent":
            return CapturePage((), None)
        start, after = int(cursor or 0), int(cursor or 0) + self.captures_page
        listed = [shot for shot in self.stored() if self._listed(shot)]
        following = str(after) if listed[after:] else None
        return CapturePage(tuple(map(self._described, listed[start:after])), following)

    def _born(self, order: Order, delay: int) -> Box:
        if order.from_capture:
            shot = self.shots.get(order.reference)
            if shot is None or not shot.alive(self.clock.now()):
                raise CaptureGone
            if shot.state(self.clock.now()) != "ready":
                raise Conflicted
        return super()._born(order, delay)

    def _under(self, instance_id: str, name: str) -> Iterator[Shot]:
        named = (instance_id, name)
        there = (shot for shot in self.shots.values() if shot.dead_at is None)  # or will be
        return (shot for shot in there if (shot.instance_id, shot.name) == named)

    def _taken(self, instance_id: str, name: str, contents: str, fault: str) -> Shot:
        born = self.clock.now() + (self.late_ms if fault == "late" else 0)
        shot = Shot(
            id=f"{self.name}-shot-{len(self.shots) + 1}",
            name=name,
            instance_id=instance_id,
            contents=contents,
            born_at=born,
            ready_at=born + self.captures_ms,
            fails=fault == "failed",
            late=fault == "late",
        )
        self.shots[shot.id] = shot
        return shot

    def _listed(self, shot: Shot) -> bool:
        return shot.born_at + self.list_lag_ms <= self.clock.now()

    def _described(self, shot: Shot) -> Capture:
        now = self.clock.now()
        return Capture(shot.id, shot.state(now), shot.name, created_at=shot.born_at)


def _made_of(box: Box, capture_id: str) -> bool:
    return box.order.from_capture and box.order.reference == capture_id
