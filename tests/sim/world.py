"""One deployment on simulated time: the real core and store, simulated vendors, crashes on demand.

A crash is a BaseException raised at a port call. The process is then gone: a new Router takes over
the same table and queue. `check` holds the invariants that hold at every moment, `settle` runs the
world until nothing is left to do.
"""

from __future__ import annotations

import contextlib
import functools
import random
from collections.abc import Callable
from typing import Any

from sandbox_router.lifecycle.create import CreateRequest, Reply
from sandbox_router.model.capability import (
    LabelLimits,
    Lifetime,
    Naming,
    Profile,
    Timeouts,
    UnitPrice,
)
from sandbox_router.model.failure import Failure, NotFound
from sandbox_router.model.pool import Pool, Prepared
from sandbox_router.model.sandbox import EDGES, Outcome, Sandbox, State
from sandbox_router.model.secret import Secret
from sandbox_router.model.size import Shape
from sandbox_router.model.spec import Cargo, Isolation, Spec
from sandbox_router.ports import Order, Provider, Table
from sandbox_router.router import Router
from sandbox_router.store import Store
from sandbox_router.table import Write
from tests.fakes.clock import START, FakeClock
from tests.fakes.ids import FakeIds
from tests.fakes.provider import Box, FakeProvider
from tests.fakes.queue import MemoryQueue
from tests.fakes.table import MemoryTable
from tests.fakes.vault import FakeVault
from tests.fakes.weak import Weak

SHAPE = Shape.of(2, 4)
TENANT = "acme"
SWEEP_MS = 60_000
RECONCILE_MS = 300_000
LATE_MS = 5_000
"""How long after its deadline an instance may live when nothing is broken."""


class Crash(BaseException):
    """The process dies here."""


def profile(kind: str = "fake", *, idempotent: bool = True, lag: int = 0) -> Profile:
    """A profile with every ability of the fake provider."""
    return Profile(
        kind=kind,
        name=kind,
        naming=Naming(idempotent=idempotent, list_lag=lag, window=600, settle=20),
        lifetime=Lifetime(max_ttl=86_400, extends=True),
        labels=LabelLimits(21, 256),
        isolation=Isolation.MICROVM,
        abilities={"exec": {}, "env": {}, "pause": {"keeps": ["memory", "disk"]}, "extend": {}},
        hosts=(),
        timeouts=Timeouts(20.0, 10.0),
        price=UnitPrice(50_400, 16_200, "USD", "2026-01-01", "https://example.com"),
    )


class FakePools:
    """`ports.Pools` over fake providers, in the order given."""

    def __init__(self, providers: dict[str, FakeProvider], made_of: Profile) -> None:
        self._providers = providers
        images = {"default": (Prepared("base", SHAPE),)}
        self._pools = [
            Pool(id_, made_of, position, isolation=Isolation.MICROVM, images=images)
            for position, id_ in enumerate(providers)
        ]

    def all(self) -> list[Pool]:
        return self._pools

    def pool(self, pool_id: str) -> Pool:
        found = next((pool for pool in self._pools if pool.id == pool_id), None)
        if found is None:
            raise NotFound
        return found

    def provider(self, pool_id: str) -> Provider:
        return self._providers[pool_id]


class World:
    """A deployment with its vendors, its clients' history and a process that can die."""

    def __init__(
        self,
        *,
        names: tuple[str, ...] = ("alpha", "beta"),
        idempotent: bool = True,
        lag_ms: int = 0,
        seed: int = 0,
        weak: dict[str, Any] | None = None,
        limits: bool = True,
        nets: frozenset[str] = frozenset({"queue", "sweep"}),
    ) -> None:
        self.clock = FakeClock()
        self.queue = MemoryQueue(self.clock)
        self.memory = MemoryTable()
        self.weak: Table = self.memory
        if weak is not None:
            self.weak = Weak(self.memory, random.Random(seed), self.clock, **weak)
        self.ids = FakeIds(seed)
        self.crash_at: int | None = None
        self.ticks = 0
        self.points: list[str] = []
        self.crashes = 0
        self.answers: list[tuple[str, Reply]] = []
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
        self.swept_at = self.reconciled_at = START
        self.boot()

    def boot(self) -> None:
        """A new process on the same storage."""
        self.queue.restart()
        self.queue.reclaim()
        self.router = Router(
            table=TickingTable(self.weak, self.tick),
            queue=TickingQueue(self.queue, self.tick),
            pools=self.pools,
            vault=FakeVault(),
            clock=self.clock,
            ids=self.ids,
            deployment="deployment-1",
            pepper=Secret("pepper"),
        )
        self.swept_at = self.clock.now() - SWEEP_MS
        self.reconciled_at = self.clock.now() - RECONCILE_MS

    def tick(self, point: str) -> None:
        """A port call: count it, die if it is this one's turn."""
        self.ticks += 1
        self.points.append(point)
        if self.crash_at is not None and self.ticks == self.crash_at:
            self.crash_at = None
            self.crashes += 1
            raise Crash(point)

    def _intent_exists(self, order: Order) -> None:
        """I7: before every provider create, the store knows of the attempt."""
        known = [str(item.get("identity")) for item in self.memory.items()]
        assert order.identity in known, "an instance is created that no stored attempt names"

    def guarded(self, call: Callable[[], Any]) -> Any:
        """Run in the process; when it dies, boot the next one."""
        try:
            return call()
        except Crash:
            self.boot()
            return None

    def create(
        self, key: str | None = "k1", *, ttl: int = 120, wait: float = 20.0, env: bool = False
    ) -> Reply | None:
        """A client's create; None when the process died or the failure was raised."""
        spec = Spec(SHAPE, ttl_seconds=ttl, env_names=("TOKEN",) if env else ())
        cargo = Cargo({"TOKEN": Secret("CANARY-1")}) if env else Cargo()
        request = CreateRequest(spec, f"{ttl}".encode(), "req-1", cargo, key)
        try:
            reply = self.guarded(lambda: self.router.create(TENANT, request, wait_seconds=wait))
        except Failure as failure:
            reply = Reply(failure.status, failure.code)
        if isinstance(reply, Reply):
            self.answers.append((key or "", reply))
            return reply
        return None

    def destroy(self, sandbox_id: str) -> None:
        """A client's destroy; failures are the client's to retry."""
        self.asked(lambda: self.router.destroy(TENANT, sandbox_id))

    def asked(self, call: Callable[[], Any]) -> None:
        """A client's call whose failure is the client's to retry."""
        with contextlib.suppress(Failure):
            self.guarded(call)

    def step(self) -> None:
        """The worker's next thing: a message that is due, a sweep, or time passes."""
        now = self.clock.now()
        if now >= self.swept_at + SWEEP_MS:
            self.swept_at = now
            if "sweep" in self.nets:
                self.asked(self.router.sweep)
            return
        if now >= self.reconciled_at + RECONCILE_MS and "reconcile" in self.nets:
            self.reconciled_at = now
            self.asked(self.router.reconcile)
            return
        for queue in ("teardown", "create") if "queue" in self.nets else ():
            for message in self.queue.receive(queue, 1, 120, now):
                self.guarded(functools.partial(self._handle, message))
                return
        waiting = self.queue.next_due() if "queue" in self.nets else None
        soon = waiting or now + SWEEP_MS
        self.clock.at(min(max(soon, now + 1), self.swept_at + SWEEP_MS))

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
        ids = [str(i["id"]) for i in self.memory.items() if str(i["pk"]).startswith("SBX#")
               and i["sk"] == "A"]  # fmt: skip
        store = Store(self.memory, self.clock, self.ids)
        return [box for box in (store.load(id_) for id_ in ids) if box is not None]

    def living(self) -> list[Box]:
        """Every instance that runs now, anywhere."""
        return [box for provider in self.providers.values() for box in provider.living()]

    def check(self) -> None:
        """What holds at every moment."""
        now = self.clock.now()
        for box in self.boxes():
            for attempt in box.attempts:
                if attempt.outcome is Outcome.GONE and attempt.instance_id:
                    vendor = self.providers[attempt.pool_id].boxes[attempt.instance_id]
                    assert not vendor.alive(now), "confirmed gone, and alive"
            if box.state is State.RUNNING and box.server and now < box.expires_at:
                vendor = self.providers[box.server.pool_id].boxes[box.server.instance_id or ""]
                served = vendor.alive(now) or vendor.dead_at is not None
                assert served, "what was handed out never was"
                assert not vendor.deleted_by_us, "what was handed out was destroyed"
            if box.state is State.DESTROYED and box.ended_at is not None:
                known = [a for a in box.attempts if a.alive and (a.ended_at or 0) < box.ended_at]
                assert not known, "destroyed before it was gone"

    def check_end(self) -> None:
        """What holds when nothing is left to do."""
        assert self.living() == [], "an instance outlived its record"
        for box in self.boxes():
            assert box.state.terminal, f"{box.state} for ever"
            assert box.settled, "finished with an attempt open"
        self.check_answers()
        self.check_edges()

    def check_answers(self) -> None:
        """I1, I2: one sandbox, one instance per key, over all answers a client ever got."""
        by_key: dict[str, set[str | None]] = {}
        for key, reply in self.answers:
            if key and reply.status == 201:
                by_key.setdefault(key, set()).add(reply.body)
        assert all(len(bodies) == 1 for bodies in by_key.values()), "two answers for one key"

    def check_edges(self) -> None:
        """I15: the audit trail walks along the table of edges."""
        for item in self.memory.items():
            if item.get("event") == "state":
                was, now = State(str(item["was"])), State(str(item["state"]))
                assert now in EDGES[was], f"{was} -> {now}"


class TickingTable:
    """A Table whose calls are crash points, before and after their effect."""

    def __init__(self, table: Table, tick: Callable[[str], None]) -> None:
        self._table, self._tick = table, tick

    def get(self, key: Any, *, consistent: bool = True) -> Any:
        self._tick("table.get")
        return self._table.get(key, consistent=consistent)

    def write(self, *writes: Write) -> None:
        self._tick("table.write")
        self._table.write(*writes)
        self._tick("table.write.done")

    def query(self, *args: Any, **kwargs: Any) -> Any:
        self._tick("table.query")
        return self._table.query(*args, **kwargs)


class TickingQueue:
    """A Queue whose sends are crash points."""

    def __init__(self, queue: MemoryQueue, tick: Callable[[str], None]) -> None:
        self._queue, self._tick = queue, tick

    def send(self, queue: str, sandbox_id: str, delay_seconds: float = 0) -> None:
        self._tick("queue.send")
        self._queue.send(queue, sandbox_id, delay_seconds)
