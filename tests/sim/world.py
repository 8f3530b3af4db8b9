"""One deployment on simulated time: the real core and store, simulated vendors, crashes on demand.

A crash is a BaseException raised at a port call. The process is then gone: a new Router takes over
the same table and queue. A rival is a second process that does something at a port call of the
first. `check` holds the invariants that hold at every moment, `settle` runs the world until nothing
is left to do.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import random
from collections import Counter, deque
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, TypeVar

from sandbox_router.model.failure import Failure
from sandbox_router.model.naming import snapshot_of
from sandbox_router.model.record import Record
from sandbox_router.model.sandbox import Sandbox, State
from sandbox_router.model.secret import Secret
from sandbox_router.model.snapshot import Snapshot
from sandbox_router.ports import Order, Table
from sandbox_router.router import Router
from sandbox_router.store import Store, Unreadable, kind_of
from tests.fakes.account import Box
from tests.fakes.clock import START, FakeClock
from tests.fakes.ids import FakeIds
from tests.fakes.objects import MemoryObjects
from tests.fakes.provider import FakeProvider, Shot
from tests.fakes.queue import MemoryQueue
from tests.fakes.vault import FakeVault
from tests.fakes.weak import Weak
from tests.sim import audit, captures, checks, history, sometimes
from tests.sim.client import TENANT, Clients
from tests.sim.process import SHAPE, Crash, FakePools, TickingQueue, TickingTable, profile
from tests.sim.race import Race
from tests.sim.table import FastTable, expired_guards

DEPLOYMENT = "deployment-1"
SWEEP_MS, RECONCILE_MS, GUARD_MS = 60_000, 300_000, 90_000
STILL = 500
"""Steps in one moment: more of them have no end."""
LATE_MS = 5_000
"""How long after its deadline an instance may live when nothing is broken."""
R = TypeVar("R", bound=Record)
WRITERS = frozenset({"queue", "sweep"})
MemoryTable = FastTable
"""The table of a world; a test puts another driver here."""


class World(Clients):
    """A deployment with its vendors, its clients' history and a process that can die.

    nets: `queue`: what writers send arrives; `sweep`, `reconcile`, `guard`: those nets. What the
    sweep sends arrives as soon as it runs at all.
    """

    latest: ClassVar[World | None] = None

    def __init__(
        self,
        *,
        names: tuple[str, ...] = ("alpha", "beta"),
        idempotent: bool = True,
        lag_ms: int = 0,
        seed: int = 0,
        weak: dict[str, Any] | None = None,
        limits: bool = True,
        nets: frozenset[str] = WRITERS,
        skew_ms: int = 0,
        stops: bool = False,
    ) -> None:
        World.latest = self
        super().__init__()
        self.clock = FakeClock()
        self.queue = MemoryQueue(self.clock)
        self.memory, self.objects = MemoryTable(), MemoryObjects()
        self.weak: Table = self.memory
        if weak is not None:
            self.weak = Weak(self.memory, random.Random(seed), self.clock, **weak)
            self.weak._replica = FastTable()
        self.ids = FakeIds(seed)
        self.crash_at: int | None = None
        self.crash_next: deque[int] = deque()
        self.rival: tuple[int, Callable[[], None]] | None = None
        self.race: Race | None = None
        self.ticks = self.crashes = self.rivals = self._stands = self._stood_at = 0
        self.points: list[str] = []
        self.sometimes: Counter[str] = Counter()
        vendor = partial(
            FakeProvider,
            clock=self.clock,
            idempotent=idempotent,
            list_lag_ms=lag_ms,
            limits=limits,
            tick=self.tick,
            on_create=self._intent_exists,
            on_capture=self._shot_is_intended,
            captures_repeat=idempotent,
            captures_stop=stops,
        )
        self.providers = {name: vendor(name) for name in names}
        lag, interrupts = (lag_ms + 999) // 1000, "stop" if stops else "pause"
        made_of = profile(idempotent=idempotent, lag=lag, interrupts=interrupts)
        self.pools = FakePools(self.providers, made_of)
        self.nets, self.skew_ms = nets, skew_ms
        self._clocks = itertools.cycle((0, skew_ms, -skew_ms))
        self.swept_at = self.reconciled_at = self.guarded_at = START
        self._within = self._sweeping = False
        self._cache: dict[str, Record] = {}
        self._checked: object = None
        self._streamed: list[str] = []
        self._fast = isinstance(self.memory, FastTable)
        eyes = (self.clock, self.memory, self.providers, self.sometimes, 2 * skew_ms)
        self.watcher = checks.Watcher(*eyes)
        if self._fast:
            self.memory.watch = self.watcher
        self.boot()

    def boot(self) -> None:
        """A new process on the same storage."""
        self.queue.restart()
        self.queue.reclaim()
        self.router = self.process()
        self.swept_at = self.clock.now() - SWEEP_MS
        self.reconciled_at = self.clock.now() - RECONCILE_MS
        if self.crash_next:
            self.crash_at = self.ticks + self.crash_next.popleft()

    def process(self) -> Router:
        """Another process on the same storage."""
        router = Router(
            table=TickingTable(self.weak, self.tick, self.sometimes),
            queue=TickingQueue(self.queue, self.tick, self._lossy),
            pools=self.pools,
            vault=FakeVault(),
            objects=self.objects,
            clock=self.clock.off(next(self._clocks)) if self.skew_ms else self.clock,
            ids=self.ids,
            deployment=DEPLOYMENT,
            pepper=Secret("pepper"),
        )
        return sometimes.watched(router, self.sometimes)

    def _lossy(self) -> bool:
        return "queue" not in self.nets and not self._sweeping

    def tick(self, point: str) -> None:
        """A port call: count it, let others act or die if it is this one's turn."""
        if self.race is not None:
            self.race.turn()
        again = self._sweeping and self.points[-1:] == [point] == ["table.query"]
        if self._within or again:  # sixteen shards are read one after the other: one moment
            return
        self.ticks += 1
        self.points.append(point)
        if self.rival is not None and self.ticks >= self.rival[0]:
            act, self.rival = self.rival[1], None
            self._within = self.watcher.slept = True
            self.rivals += 1
            try:
                act()
            finally:
                self._within = False
        if self.crash_at is not None and self.ticks == self.crash_at:
            self.crash_at = None
            self.crashes += 1
            raise Crash(point)

    def _intent_exists(self, order: Order) -> None:
        """I7: before every provider create, the store knows of the attempt."""
        page = self.memory.query(None, f"SBX#{order.tags['constal-sandbox-id']}")
        assert order.identity in {item.get("identity") for item in page.items}, (
            "I7: an instance is created that no stored attempt names"
        )

    def _shot_is_intended(self, name: str) -> None:
        """I7: the same, before every capture."""
        page = self.memory.query(None, f"SNAP#{snapshot_of(DEPLOYMENT, name)}")
        assert name in {item.get("identity") for item in page.items}, (
            "I7: a capture is taken that no stored attempt names"
        )

    def guarded(self, call: Callable[[], Any]) -> Any:
        """Run in the process; when it dies, boot the next one."""
        try:
            return call()
        except Crash:
            self.boot()
            return None

    def step(self) -> None:
        """The worker's next thing: a message that is due, a sweep, or time passes."""
        now = self.clock.now()
        self._stands = self._stands + 1 if now == self._stood_at else 0
        self._stood_at = now
        assert self._stands < STILL, "one thing after the other, and no time passes"
        if now >= self.swept_at + SWEEP_MS:
            self.swept_at = now
            if "sweep" in self.nets:
                self._sweep()
            return
        if now >= self.reconciled_at + RECONCILE_MS and "reconcile" in self.nets:
            self.reconciled_at = now
            self.asked(self.router.reconcile)
            return
        if now >= self.guarded_at + GUARD_MS and "guard" in self.nets:
            self._expire_guards(now)
            return
        carried = WRITERS & self.nets
        for queue in ("teardown", "create") if carried else ():
            for message in self.queue.receive(queue, 1, 120, now):
                self.guarded(functools.partial(self._handle, message))
                return
        waiting = self.queue.next_due() if carried else None
        soon = waiting or now + SWEEP_MS
        self.clock.at(min(max(soon, now + 1), self.swept_at + SWEEP_MS))

    def _sweep(self) -> None:
        self._sweeping = True
        try:
            self.asked(self.router.sweep)
        finally:
            self._sweeping = False

    def _expire_guards(self, now: int) -> None:
        """What the table's expiry service and its stream do; a record of it comes until taken."""
        self._streamed.extend(expired_guards(self.memory, now))
        while self._streamed:
            crashes = self.crashes
            try:
                self.guarded(lambda: self.router.guard(self._streamed[0]))
            except Failure:
                return
            if self.crashes > crashes:
                return
            self._streamed.pop(0)
        self.guarded_at = now

    def _handle(self, message: Any) -> None:
        try:
            self.router.advance(message.record_id)
        except Failure:
            self.queue.later(message, 1)
            return
        self.queue.done(message)

    def run_until(self, ms: int) -> None:
        """Let the world go on to a moment, checking all the way."""
        while self.clock.now() < ms:
            self.step()
            self.check()

    def settle(self, horizon_ms: int = 1_500_000) -> None:
        """Go on until every record is finished, at most this long."""
        end = self.clock.now() + horizon_ms
        while self.clock.now() < end and any(r.due_at is not None for r in self.records()):
            self.step()
            self.check()

    def boxes(self) -> list[Sandbox]:
        """Every record of a sandbox as it is stored."""
        return self._records(Sandbox)

    def shots(self) -> list[Snapshot]:
        """Every record of a snapshot as it is stored."""
        return self._records(Snapshot)

    def records(self) -> list[Record]:
        """Both."""
        return [*self.boxes(), *self.shots()]

    def _records(self, kind: type[R]) -> list[R]:
        if not self._fast:
            self._cache.clear()
            self.memory.changed = {str(item["pk"]) for item in self.memory.items()}
        for pk in self.memory.changed:
            self._cache.pop(pk, None)
            prefix, _, record_id = pk.partition("#")
            if prefix in ("SBX", "SNAP") and (record := self._loaded(record_id)):
                self._cache[pk] = record
        self.memory.changed.clear()
        return [each for _, each in sorted(self._cache.items()) if isinstance(each, kind)]

    def _loaded(self, record_id: str) -> Record | None:
        with contextlib.suppress(Unreadable):
            store = Store(self.memory, self.clock, self.ids)
            return store.load(kind_of(record_id), record_id)
        return None

    def stored(self) -> list[Shot]:
        """Every capture that exists now, anywhere."""
        return [shot for provider in self.providers.values() for shot in provider.stored()]

    def living(self) -> list[Box]:
        """Every instance that runs now, anywhere."""
        return [box for provider in self.providers.values() for box in provider.living()]

    def check(self) -> None:
        """What holds at every moment; looked at when something has changed."""
        now = (self._version(), self._vendor_calls())
        if now == self._checked and self._fast:
            return
        self._checked = now
        for box in self.boxes():
            checks.check_record(box, self.providers, self.clock.now(), 2 * self.skew_ms)
        for shot in self.shots():
            captures.check_record(shot, self.providers, self.clock.now(), 2 * self.skew_ms)

    def check_end(self) -> None:
        """What holds when nothing is left to do."""
        assert self.living() == [], "I8: an instance outlived its record"
        assert self.stored() == [], "I8: a capture outlived its record"
        for record in self.records():
            assert record.over, f"I18: {record.state} for ever"
            assert record.settled, "finished with an attempt open"
        self.check_answers()
        self.check_edges()
        if self._fast:
            for record in self.records():
                audit.check_trail(self.memory, record)
            upsets = self.crashes + self.rivals
            checks.check_calls(self.boxes(), self.providers, upsets)
            captures.check_calls(self.providers, upsets)

    def check_answers(self) -> None:
        """I1-I6, from what clients saw."""
        now = self.clock.now() / 1000
        self.history.extend(checks.final(self.boxes(), self.living(), now))
        self.history.extend(captures.final(self.shots(), self.stored(), now))
        history.check(self.history)

    def check_edges(self) -> None:
        """I15: the audit trail walks along the table of edges."""
        checks.check_edges(self.memory.items())

    def told(self) -> Counter[str]:
        """The situations this life was in."""
        log = [item for item in self.memory.items() if str(item["pk"]).startswith("LOG#")]
        sometimes.told(self.boxes(), log, self.providers.values(), self.sometimes)
        captures.told(self.shots(), self.providers, self.sometimes)
        return self.sometimes


__all__ = ["SHAPE", "TENANT", "Crash", "FakePools", "State", "World", "profile"]
