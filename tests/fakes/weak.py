"""A Table as bad as DynamoDB may be: late indexes, conflicts, lost answers, throttles."""

from __future__ import annotations

import random
import threading
from collections import deque
from collections.abc import Iterable
from typing import Literal

from sandbox_router.ports import Clock, Table
from sandbox_router.table import (
    EVERYTHING,
    PK,
    SK,
    ConditionFailed,
    Contended,
    Item,
    Key,
    Lost,
    Page,
    Range,
    Write,
)
from tests.fakes.table import MemoryTable

Fault = Literal["ok", "contended", "lost", "dropped", "throttled"]
"""`lost`: written, then no answer. `dropped`: not written, and no answer either. A read takes
`contended` and `throttled` alike, and a lost answer of a read is just a Contended."""


class Weak:
    """`ports.Table` around another one; share one wrapper among all who use the table.

    Faults come from `writes` and `reads` (scripts for the next calls) while they last, then by
    chance. With `lag_ms`, indexes and inconsistent reads show a replica that each change reaches
    after up to that long, changes of one item in order; the wrapped table must start empty.
    `short` is the chance that a page holds fewer items than it could.
    """

    def __init__(
        self,
        table: Table,
        chance: random.Random,
        clock: Clock,
        *,
        lag_ms: int = 0,
        contended: float = 0.0,
        lost: float = 0.0,
        throttled: float = 0.0,
        short: float = 0.0,
    ) -> None:
        self._table, self._random, self._clock = table, chance, clock
        self.lag_ms, self.contended, self.lost = lag_ms, contended, lost
        self.throttled, self.short = throttled, short
        self.writes: deque[Fault] = deque()
        self.reads: deque[Fault] = deque()
        self._replica = MemoryTable()
        self._late: deque[tuple[int, Key, Item | None]] = deque()
        self._last: dict[Key, int] = {}
        self._lock = threading.RLock()

    def get(self, key: Key, *, consistent: bool = True) -> Item | None:
        self._read_fault()
        if consistent or not self.lag_ms:
            return self._table.get(key, consistent=consistent)
        return self._seen().get(key)

    def query(
        self,
        index: str | None,
        hash: str,
        range: Range = EVERYTHING,
        *,
        limit: int = 100,
        cursor: str | None = None,
        descending: bool = False,
    ) -> Page:
        self._read_fault()
        with self._lock:
            if limit > 1 and self._random.random() < self.short:
                limit = self._random.randint(1, limit)
        table = self._seen() if index and self.lag_ms else self._table
        return table.query(index, hash, range, limit=limit, cursor=cursor, descending=descending)

    def write(self, *writes: Write) -> None:
        fault = self._write_fault()
        if fault in ("contended", "throttled"):
            raise Contended
        if fault == "dropped":
            raise Lost
        try:
            self._table.write(*writes)
        except ConditionFailed:
            if fault == "lost":
                raise Lost from None
            raise
        self._remember(write.key for write in writes)
        if fault == "lost":
            raise Lost

    def purge(self, now_seconds: int, limit: int = 100) -> tuple[Item, ...]:
        """The wrapped table's; without faults."""
        gone: tuple[Item, ...] = self._table.purge(now_seconds, limit)  # type: ignore[attr-defined]
        self._remember((str(item[PK]), str(item[SK])) for item in gone)
        return gone

    def _read_fault(self) -> None:
        with self._lock:
            if self.reads:
                fault = self.reads.popleft()
            else:
                fault = "throttled" if self._random.random() < self.throttled else "ok"
        if fault != "ok":
            raise Contended

    def _write_fault(self) -> Fault:
        with self._lock:
            if self.writes:
                return self.writes.popleft()
            if self._random.random() < self.throttled:
                return "throttled"
            if self._random.random() < self.contended:
                return "contended"
            if self._random.random() < self.lost:
                return "lost" if self._random.random() < 0.5 else "dropped"
            return "ok"

    def _remember(self, keys: Iterable[Key]) -> None:
        """Read back under the lock: so the order of notes is the order of each item's versions."""
        if not self.lag_ms:
            return
        with self._lock:
            for key in keys:
                at = self._clock.now() + round(self._random.random() * self.lag_ms)
                at = self._last[key] = max(at, self._last.get(key, 0))
                self._late.append((at, key, self._table.get(key)))

    def _seen(self) -> MemoryTable:
        with self._lock:
            now, waiting = self._clock.now(), self._late
            self._late = deque()
            for at, key, item in waiting:
                if at <= now:
                    self._replica.replace(key, item)
                else:
                    self._late.append((at, key, item))
        return self._replica
