"""Ports whose calls are moments at which a process can die, and what pools it has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sandbox_router.model.capability import (
    LabelLimits,
    Lifetime,
    Naming,
    Profile,
    Timeouts,
    UnitPrice,
)
from sandbox_router.model.failure import NotFound
from sandbox_router.model.pool import Pool, Prepared
from sandbox_router.model.size import Shape
from sandbox_router.model.spec import Isolation
from sandbox_router.ports import Provider, Table
from sandbox_router.table import Lost, Write
from tests.fakes.provider import FakeProvider
from tests.fakes.queue import MemoryQueue
from tests.sim import sometimes

SHAPE = Shape.of(2, 4)
Tick = Callable[[str], None]


class Crash(BaseException):
    """The process dies here."""


def profile(
    kind: str = "fake", *, idempotent: bool = True, lag: int = 0, interrupts: str = "pause"
) -> Profile:
    """A profile with every ability of the fake provider."""
    return Profile(
        kind=kind,
        name=kind,
        naming=Naming(idempotent=idempotent, list_lag=lag, window=600, settle=20),
        lifetime=Lifetime(max_ttl=86_400, extends=True),
        labels=LabelLimits(21, 256),
        isolation=Isolation.MICROVM,
        abilities={
            "exec": {},
            "env": {},
            "pause": {"keeps": ["memory", "disk"]},
            "extend": {},
            "snapshots": {
                "contents": ["disk", "memory"],
                "interrupts": interrupts,
                "idempotent": idempotent,
            },
        },
        hosts=(),
        timeouts=Timeouts(20.0, 10.0),
        price=UnitPrice(50_400, 16_200, "USD", "2026-01-01", "https://example.com"),
    )


class FakePools:
    """`ports.Pools` over fake providers, in the order given."""

    def __init__(self, providers: dict[str, FakeProvider], made_of: Profile) -> None:
        self._providers = providers
        self._removed: dict[str, Pool] = {}
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
        return self._providers[self.pool(pool_id).id]

    def remove(self, pool_id: str) -> None:
        """The operator takes a pool out of the configuration."""
        self._removed[pool_id] = self.pool(pool_id)
        self._pools.remove(self._removed[pool_id])

    def restore(self, pool_id: str) -> None:
        """And brings it back."""
        self._pools.append(self._removed.pop(pool_id))


class TickingTable:
    """A Table whose calls are crash points, before and after their effect."""

    def __init__(self, table: Table, tick: Tick, seen: sometimes.Seen) -> None:
        self._table, self._tick, self._seen = table, tick, seen

    def get(self, key: Any, *, consistent: bool = True) -> Any:
        self._tick("table.get")
        return self._table.get(key, consistent=consistent)

    def write(self, *writes: Write) -> None:
        self._tick("table.write")
        try:
            self._table.write(*writes)
        except Lost:
            sometimes.lost(writes, self._seen)
            raise
        self._tick("table.write.done")

    def query(self, *args: Any, **kwargs: Any) -> Any:
        self._tick("table.query")
        return self._table.query(*args, **kwargs)


class TickingQueue:
    """A Queue whose sends are crash points; `lossy` says whether a send is lost now."""

    def __init__(self, queue: MemoryQueue, tick: Tick, lossy: Callable[[], bool]) -> None:
        self._queue, self._tick, self._lossy = queue, tick, lossy

    def send(self, queue: str, record_id: str, delay_seconds: float = 0) -> None:
        self._tick("queue.send")
        if not self._lossy():
            self._queue.send(queue, record_id, delay_seconds)
