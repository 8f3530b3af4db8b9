"""A simulated vendor account: instances on the fake clock, faults by script, lags by number."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from sandbox_router.model.failure import (
    BrokenPool,
    Capacity,
    Conflicted,
    Gone,
    Outage,
    Permission,
    Policy,
    PoolUnsupported,
    Quota,
    RateLimited,
    Refused,
    Region,
    Rejected,
    Unknown,
)
from sandbox_router.ports import Clock, Instance, InstancePage, InstanceState, Order

REFUSALS: Mapping[str, type[Refused]] = {
    "capacity": Capacity,
    "rate_limited": RateLimited,
    "quota": Quota,
    "outage": Outage,
    "unauthorized": BrokenPool,
    "forbidden": Permission,
    "policy": Policy,
    "invalid": Rejected,
    "conflict": Conflicted,
    "region": Region,
    "unsupported": PoolUnsupported,
}

KINDS = frozenset(
    {
        *("ok", *REFUSALS, "cut", "lost", "late", "slow", "twice", "brief", "kept", "ending"),
        *("absent", "hidden", "gone", "skipped"),
    }
)
"""What a call may meet."""
SLOW = 9.0
ENDING_MS = BRIEF_MS = 30_000
"""How long an end that was accepted takes, and what was given a shorter life than asked lives."""


@dataclass
class Box:
    """One simulated instance; it appears at `born_at` and is dead from `dead_at` on."""

    id: str
    order: Order
    born_at: int
    ends_at: int
    state: InstanceState = "running"
    dead_at: int | None = None
    deleted_by_us: bool = False
    limited: bool = True
    late: bool = False
    hidden_until: int = 0
    twin: bool = False

    def alive(self, now: int) -> bool:
        """Does it run (and bill) now?"""
        ended = self.dead_at is not None and self.dead_at <= now
        return self.born_at <= now and not ended and (now < self.ends_at or not self.limited)


@dataclass
class FakeAccount:
    """`ports.Provider`, without captures. `faults` scripts the next calls per operation; `ok` when
    it runs out.

    Besides refusals: `cut` (nothing done, no answer), `lost` (done, no answer), `late` (done
    `late_ms` from now, no answer), `slow` (done; an answer after SLOW seconds, if anybody still
    waits), `twice` (two under one name), `brief` (a shorter life than asked); `kept` (a destroy
    that was accepted and does nothing), `ending` (one that takes a while); `absent` (not shown,
    though alive), `hidden` (not shown for the list lag), `gone`; `skipped` (a page shows only every
    other one). `tick` is told of every call before and after its effect. Without `limits` it
    enforces no lifetime: its own net is off.

    ghost_ms: how long lists show what has ended. holds_booting: what boots cannot be destroyed.
    skew_ms: how wrong its clock is. page: how many a page of its list shows; pages overlap by one.
    """

    kinds: ClassVar[frozenset[str]] = KINDS
    name: str
    clock: Clock
    idempotent: bool = True
    list_lag_ms: int = 0
    late_ms: int = 45_000
    boots_ms: int = 0
    limits: bool = True
    ghost_ms: int = 0
    holds_booting: bool = False
    skew_ms: int = 0
    page: int = 100
    faults: dict[str, deque[str]] = field(default_factory=dict)
    calls: list[tuple[str, str]] = field(default_factory=list)
    moments: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    boxes: dict[str, Box] = field(default_factory=dict)
    tick: Callable[[str], None] = lambda point: None
    on_create: Callable[[Order], None] = lambda order: None

    def script(self, op: str, *faults: str) -> None:
        """The next calls of `op` meet these."""
        assert set(faults) <= self.kinds, faults
        self.faults.setdefault(op, deque()).extend(faults)

    def living(self) -> list[Box]:
        """Instances that run now."""
        return [box for box in self.boxes.values() if box.alive(self.clock.now())]

    def verify(self) -> None:
        self._called("verify", "")

    def create(self, order: Order, *, timeout: float) -> Instance:
        self.on_create(order)
        fault = self._called("create", order.identity)
        known = self._named(order.identity) if self.idempotent else None
        delay = self.late_ms if fault == "late" else 0
        box = known or self._born(order, delay)
        if fault == "twice":
            self._born(order, delay).twin = True
        if fault == "brief":
            box.dead_at = box.born_at + BRIEF_MS
        self.tick(f"{self.name}.create.done")
        if fault in ("lost", "late"):
            raise Unknown
        if fault == "slow":
            self._slowly(timeout)
        if not box.alive(self.clock.now()):
            raise Unknown if box.born_at > self.clock.now() else Conflicted
        return self._seen(box)

    def find(self, tags: Mapping[str, str]) -> Instance | None:
        if self._called("find", tags["constal-sandbox"]) == "absent":
            return None
        for box in self._shown():
            if tags.items() <= box.order.tags.items():
                return self._seen(box)
        return None

    def get(self, instance_id: str) -> Instance | None:
        fault, now = self._called("get", instance_id), self.clock.now()
        box = self.boxes.get(instance_id)
        if box is None or not box.alive(now):
            return None
        if fault == "hidden":
            box.hidden_until = now + self.list_lag_ms
        shown = fault not in ("absent", "hidden") and now >= box.hidden_until
        return self._seen(box) if shown else None

    def destroy(self, instance_id: str) -> None:
        fault = self._called("destroy", instance_id)
        box, now = self.boxes.get(instance_id), self.clock.now()
        if box and box.alive(now) and fault != "kept":
            if self.holds_booting and now < box.born_at + self.boots_ms:
                raise Conflicted
            ends = now + (ENDING_MS if fault == "ending" else 0)
            box.dead_at, box.deleted_by_us = min(ends, box.dead_at or ends), True
        self.tick(f"{self.name}.destroy.done")
        if fault == "lost":
            raise Unknown

    def instances(self, cursor: str | None) -> InstancePage:
        fault = self._called("instances", cursor or "")
        if fault == "absent":
            return InstancePage((), None)
        start, listed = int(cursor or 0), self._shown()
        page = listed[max(start - 1, 0) : start + self.page]
        following = str(start + self.page) if listed[start + self.page :] else None
        return InstancePage(
            tuple(map(self._seen, page[::2] if fault == "skipped" else page)), following
        )

    def extend(self, instance_id: str, lifetime_seconds: int) -> None:
        fault = self._called("extend", instance_id)
        self._there(instance_id).ends_at = self.clock.now() + lifetime_seconds * 1000
        if fault == "lost":
            raise Unknown

    def pause(self, instance_id: str, keep: str) -> None:
        fault = self._called("pause", instance_id)
        self._there(instance_id).state = "paused"
        if fault == "lost":
            raise Unknown

    def resume(self, instance_id: str, lifetime_seconds: int) -> Instance:
        fault = self._called("resume", instance_id)
        box = self._there(instance_id)
        box.state = "running"
        box.ends_at = max(box.ends_at, self.clock.now() + lifetime_seconds * 1000)
        if fault == "lost":
            raise Unknown
        return self._seen(box)

    def _called(self, op: str, subject: str) -> str:
        self.tick(f"{self.name}.{op}")
        self.calls.append((op, subject))
        self.moments[op, subject, self.clock.now()] += 1
        script = self.faults.get(op)
        fault = script.popleft() if script else "ok"
        if fault in REFUSALS:
            raise REFUSALS[fault](retry_after=2 if fault == "rate_limited" else None)
        if fault == "cut":
            raise Unknown
        if fault == "gone":
            raise Gone
        return fault

    def _slowly(self, timeout: float) -> None:
        self.clock.sleep(min(SLOW, timeout))
        if timeout < SLOW:
            raise Unknown

    def _shown(self) -> list[Box]:
        """What a list shows: not yet what is new, and still what has just ended."""
        now = self.clock.now()
        return [
            box
            for box in self.boxes.values()
            if box.born_at + self.list_lag_ms <= now
            and (box.alive(now) or now < (box.dead_at or 0) + self.ghost_ms)
        ]

    def _there(self, instance_id: str) -> Box:
        box = self.boxes.get(instance_id)
        if box is None or not box.alive(self.clock.now()):
            raise Gone
        return box

    def _named(self, identity: str) -> Box | None:
        return next((b for b in self.boxes.values() if b.order.identity == identity), None)

    def _born(self, order: Order, delay: int) -> Box:
        now = self.clock.now() + delay
        box = Box(
            id=f"{self.name}-{len(self.boxes) + 1}",
            order=replace(order),
            born_at=now,
            ends_at=now + order.lifetime_seconds * 1000,
            limited=self.limits,
            late=delay > 0,
        )
        self.boxes[box.id] = box
        return box

    def _seen(self, box: Box) -> Instance:
        booting = self.clock.now() < box.born_at + self.boots_ms
        state: InstanceState = "starting" if booting else box.state
        born, ends = box.born_at + self.skew_ms, box.ends_at + self.skew_ms
        return Instance(box.id, state, box.order.tags, box.order.shape, born, ends)
