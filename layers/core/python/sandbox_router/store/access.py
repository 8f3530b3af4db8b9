"""The table, asked again when it was busy; a write of this store may always be repeated."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ..model.failure import StoreBusy
from ..ports import Clock, Ids, Table
from ..table import EVERYTHING, Contended, Delete, Item, Key, Lost, Page, Put, Range, Write

T = TypeVar("T")
TRIES = 5


class Access:
    """Reads and writes of items. Raises StoreBusy when the table does not answer."""

    def __init__(self, table: Table, clock: Clock, ids: Ids) -> None:
        self._table, self._clock, self._ids = table, clock, ids

    def get(self, key: Key) -> Item | None:
        """An item as it is now."""
        return self._tried(lambda: self._table.get(key))

    def put(self, key: Key, item: Item) -> None:
        """Keep an item of another kind: an API key, a sighting, a place in the outbox."""
        self._write(Put(key, item))

    def drop(self, key: Key) -> None:
        """Forget such an item."""
        self._write(Delete(key))

    def _query(
        self,
        index: str | None,
        hash: str,
        range: Range = EVERYTHING,
        *,
        limit: int = 100,
        cursor: str | None = None,
        descending: bool = False,
    ) -> Page:
        return self._tried(
            lambda: self._table.query(
                index, hash, range, limit=limit, cursor=cursor, descending=descending
            )
        )

    def _write(self, *writes: Write) -> None:
        """Write; every write of this store can be repeated after a lost answer."""
        self._tried(lambda: self._table.write(*writes))

    def _tried(self, call: Callable[[], T]) -> T:
        """Again after contention, throttling or a lost answer, a few times."""
        for attempt in range(TRIES):
            try:
                return call()
            except (Contended, Lost):
                self._clock.sleep(0.02 * 2**attempt * (0.5 + self._ids.jitter()))
        raise StoreBusy
