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
import json
import random
from collections import Counter, deque
from collections.abc import Callable
from typing import Any, ClassVar

from sandbox_router.lifecycle.create import CreateRequest
from sandbox_router.lifecycle.once import Reply
from sandbox_router.model.failure import Failure, KeyReused, StoreBusy
from sandbox_router.model.sandbox import Sandbox, State
from sandbox_router.model.secret import Secret
from sandbox_router.model.spec import Cargo, Spec
from sandbox_router.ports import Order, Table
from sandbox_router.router import Router
from sandbox_router.store import Store, Unreadable
from tests.fakes.account import Box
from tests.fakes.clock import START, FakeClock
from tests.fakes.ids import FakeIds
from tests.fakes.objects import MemoryObjects
from tests.fakes.provider import FakeProvider
from tests.fakes.queue import MemoryQueue
from tests.fakes.vault import FakeVault
from tests.fakes.weak import Weak
from tests.sim import audit, checks, history, sometimes
from tests.sim.history import Event
from tests.sim.process import SHAPE, Crash, FakePools, TickingQueue, TickingTable, profile
from tests.sim.race import Race
from tests.sim.table import FastTable, expired_guards

TENANT = "acme"
SWEEP_MS, RECONCILE_MS, GUARD_MS = 60_000, 300_000, 90_000
STILL = 500
"""Steps in one moment: more of them have no end."""
LATE_MS = 5_000
"""How long after its deadline an instance may live when nothing is broken."""
WRITERS = frozenset({"queue", "sweep"})
MemoryTable = FastTable
"""The table of a world; a test puts another driver here."""


class World:
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
    ) -> None:
        World.latest = self
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
        self.answers: list[tuple[str, Reply]] = []
        self.history: list[Event] = []
        self.sometimes: Counter[str] = Counter()
        self.providers = {
            name: FakeProvider(
                name,
                self.clock,
                idempotent=idempotent,
                list_lag_ms=lag_ms,
                limits=limits,
                tick=self.tick,
                on_create=self._intent_exists,
            )
            for name in names
        }
        self.pools = FakePools(
            self.providers, profile(idempotent=idempotent, lag=(lag_ms + 999) // 1000)
        )
        self.nets = nets
        self.swept_at = self.reconciled_at = self.guarded_at = START
        self._within = self._sweeping = False
        self._calls = itertools.count(1)
        self._cache: dict[str, Sandbox] = {}
        self._checked: object = None
        self._streamed: list[str] = []
        self._fast = isinstance(self.memory, FastTable)
        self.watcher = checks.Watcher(self.clock, self.memory, self.providers, self.sometimes)
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
            clock=self.clock,
            ids=self.ids,
            deployment="deployment-1",
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

    def guarded(self, call: Callable[[], Any]) -> Any:
        """Run in the process; when it dies, boot the next one."""
        try:
            return call()
        except Crash:
            self.boot()
            return None

    def create(
        self,
        key: str | None = "k1",
        *,
        ttl: int = 120,
        wait: float = 20.0,
        env: bool = False,
        tenant: str = TENANT,
        idle: int | None = None,
        router: Router | None = None,
    ) -> Reply | None:
        """A client's create; None when the process died or the failure was raised."""
        spec = Spec(SHAPE, ttl_seconds=ttl, env_names=("TOKEN",) if env else (), idle_seconds=idle)
        cargo = Cargo({"TOKEN": Secret("CANARY-1")}) if env else Cargo()
        body = f"{ttl}" if idle is None else f"{ttl} {idle}"
        request = CreateRequest(spec, body.encode(), "req-1", cargo, key)
        call, before = next(self._calls), (self._vendor_calls(), self._version())
        self._note("invoke", "create", call, tenant=tenant, key=key, body=body)
        process = router or self.router
        try:
            reply = self.guarded(lambda: process.create(tenant, request, wait_seconds=wait))
        except Failure as failure:
            self.sometimes["the store was busy"] += isinstance(failure, StoreBusy)
            if isinstance(failure, KeyReused):
                self.sometimes["a key was reused with another body"] += 1
                self._untouched(before, "I4: a refused body reached somebody")
            reply = Reply(failure.status, failure.code)
        if not isinstance(reply, Reply):
            self._note("info", "create", call)
            return None
        self.answers.append((key or "", reply))
        self._answered(call, reply)
        if reply.replayed and reply.status < 300:
            which = "settled answer" if reply.status == 201 else "starting sandbox"
            self.sometimes[f"a {which} was replayed"] += 1
        settled = [e for e in self.history if e.answer == reply.body and e.status == 201]
        if reply.status == 201 and len(settled) > 1 and not self._within:
            self._untouched(before, "I5: a replay did something")
        return reply

    def _answered(self, call: int, reply: Reply) -> None:
        good = reply.status < 300
        told = json.loads(reply.body) if good else {}
        self._note(
            "ok" if good else "fail",
            "create",
            call,
            status=reply.status,
            sandbox=reply.record_id,
            instance=told.get("instance_id"),
            state=told.get("state") or ("reused" if reply.body == KeyReused.code else None),
            answer=reply.body if reply.status == 201 else "",
        )

    def _untouched(self, before: tuple[int, object], fault: str) -> None:
        if self.race is None and self.rival is None and not self.rivals:
            assert before == (self._vendor_calls(), self._version()), fault

    def _note(self, kind: history.Kind, op: str, call: int = 0, **more: Any) -> None:
        self.history.append(Event(kind, op, self.clock.now() / 1000, call, **more))

    def _vendor_calls(self) -> int:
        return sum(len(provider.calls) for provider in self.providers.values())

    def _version(self) -> object:
        return getattr(self.memory, "version", None)

    def destroy(self, sandbox_id: str, tenant: str = TENANT, router: Router | None = None) -> None:
        """A client's destroy; failures are the client's to retry."""
        process, call = router or self.router, next(self._calls)
        self._note("invoke", "destroy", call, tenant=tenant, sandbox=sandbox_id)
        kind: history.Kind = "info"
        with contextlib.suppress(Failure):
            done = self.guarded(lambda: process.destroy(tenant, sandbox_id))
            kind = "info" if done is None else "ok"
        self._note(kind, "destroy", call, sandbox=sandbox_id)

    def asked(self, call: Callable[[], Any]) -> None:
        """A client's call whose failure is the client's to retry."""
        try:
            self.guarded(call)
        except StoreBusy:
            self.sometimes["the store was busy"] += 1
        except Failure:
            pass

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
            self.router.advance(message.sandbox_id)
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
        while self.clock.now() < end and any(b.due_at is not None for b in self.boxes()):
            self.step()
            self.check()

    def boxes(self) -> list[Sandbox]:
        """Every record as it is stored."""
        if not self._fast:
            ids = [str(i["id"]) for i in self.memory.items() if str(i["pk"]).startswith("SBX#")
                   and i["sk"] == "A"]  # fmt: skip
            return [box for id_ in ids if (box := self._loaded(id_)) is not None]
        for pk in self.memory.changed:
            self._cache.pop(pk, None)
            if pk.startswith("SBX#") and (box := self._loaded(pk.removeprefix("SBX#"))):
                self._cache[pk] = box
        self.memory.changed.clear()
        return [self._cache[pk] for pk in sorted(self._cache)]

    def _loaded(self, id_: str) -> Sandbox | None:
        with contextlib.suppress(Unreadable):
            return Store(self.memory, self.clock, self.ids).load(Sandbox, id_)
        return None

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
            checks.check_record(box, self.providers, self.clock.now())

    def check_end(self) -> None:
        """What holds when nothing is left to do."""
        assert self.living() == [], "I8: an instance outlived its record"
        for box in self.boxes():
            assert box.state.terminal, f"I18: {box.state} for ever"
            assert box.settled, "finished with an attempt open"
        self.check_answers()
        self.check_edges()
        if self._fast:
            for box in self.boxes():
                audit.check_trail(self.memory, box)
            checks.check_calls(self.boxes(), self.providers, self.crashes + self.rivals)

    def check_answers(self) -> None:
        """I1-I6, from what clients saw."""
        self.history.extend(checks.final(self.boxes(), self.living(), self.clock.now() / 1000))
        history.check(self.history)

    def check_edges(self) -> None:
        """I15: the audit trail walks along the table of edges."""
        checks.check_edges(self.memory.items())

    def told(self) -> Counter[str]:
        """The situations this life was in."""
        log = [item for item in self.memory.items() if str(item["pk"]).startswith("LOG#")]
        sometimes.told(self.boxes(), log, self.providers.values(), self.sometimes)
        return self.sometimes


__all__ = ["SHAPE", "TENANT", "Crash", "FakePools", "State", "World", "profile"]
