"""The Table in memory: the reference semantics and nothing else."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, TypeVar, cast

from adapters.items import (
    Position,
    after,
    check,
    check_key,
    check_query,
    from_cursor,
    places,
    to_cursor,
)
from sandbox_router.table import (
    EVERYTHING,
    PK,
    SK,
    TTL,
    Check,
    ConditionFailed,
    Item,
    Key,
    Page,
    Range,
    Value,
    Write,
    holds,
)

T = TypeVar("T")


class MemoryTable:
    """`ports.Table` on a dict; items are copied on the way in and out."""

    def __init__(self) -> None:
        self._items: dict[Key, Item] = {}
        self._lock = threading.RLock()

    def get(self, key: Key, *, consistent: bool = True) -> Item | None:
        check_key(key)
        with self._lock:
            return _copied(self._items.get(key))

    def write(self, *writes: Write) -> None:
        check(writes)
        with self._lock:
            before = [self._items.get(write.key) for write in writes]
            pairs = list(zip(writes, before, strict=True))
            good = [holds(write.when, item) for write, item in pairs]
            if not all(good):
                failed = zip(good, before, strict=True)
                raise ConditionFailed(
                    tuple(None if ok else _copied(item or {}) for ok, item in failed)
                )
            changed = [(write.key, after(write, item)) for write, item in pairs]
            for (key, item), write in zip(changed, writes, strict=True):
                if not isinstance(write, Check):
                    self.replace(key, item)

    def replace(self, key: Key, item: Item | None) -> None:
        """Make the item this one, unconditionally; None removes it."""
        with self._lock:
            if item is None:
                self._items.pop(key, None)
            else:
                self._items[key] = _copied(item)

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
        check_query(index, hash, range, limit)
        start = None
        if cursor is not None:
            start = _order(from_cursor(index, hash, descending, cursor))
        with self._lock:
            found = sorted(self._partition(index, hash, range), key=_order, reverse=descending)
            if start:
                found = [at for at in found if (_order(at) < start) == descending]
                found = [at for at in found if _order(at) != start]
            page = found[:limit]
            items = tuple(_copied(self._items[pk, sk]) for _, pk, sk in page)
        more = len(found) > limit
        return Page(items, to_cursor(index, hash, descending, page[-1]) if more else None)

    def _partition(self, index: str | None, hash: str, range: Range) -> Iterator[Position]:
        for (pk, sk), item in self._items.items():
            place = (pk, sk) if index is None else places(item).get(index)
            if place is None or place[0] != hash:
                continue
            at = _sort(place[1])
            if range.low is not None and at < _sort(range.low):
                continue
            if range.high is None or at <= _sort(range.high):
                yield place[1], pk, sk

    def purge(self, now_seconds: int, limit: int = 100) -> tuple[Item, ...]:
        """Delete items past their TTL, and return them: what the TTL service does some day."""
        with self._lock:
            past = [
                item
                for item in self._items.values()
                if type(at := item.get(TTL)) is int and at <= now_seconds
            ][:limit]
            for item in past:
                del self._items[str(item[PK]), str(item[SK])]
        return tuple(past)

    def items(self) -> list[Item]:
        """A copy of everything, by key: for assertions, never for the store."""
        with self._lock:
            return [_copied(item) for _, item in sorted(self._items.items())]


def _copied(value: T) -> T:
    """A copy all the way down: `copy.deepcopy` takes four times as long for plain data."""
    copied: Any = value
    if isinstance(value, dict):
        copied = {key: _copied(inner) for key, inner in value.items()}
    elif isinstance(value, list):
        copied = [_copied(inner) for inner in value]
    return cast("T", copied)


def _sort(value: Value) -> tuple[bool, Value]:
    return isinstance(value, str), value  # numbers before strings, as SQLite has it


def _order(position: Position) -> tuple[tuple[bool, Value], str, str]:
    sort, pk, sk = position
    return _sort(sort), pk, sk
