"""The table of the simulation: `MemoryTable` without copies and checks, and eyes on every write.

Items are shared, not copied: the store never changes one in place, and `test_table` compares the
two. `watch` is told of each write that took place, with the items before it; `changed` collects
the partitions that are not what they were.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import cast

from adapters.items import Position, from_cursor, to_cursor
from sandbox_router.table import (
    EVERYTHING,
    INDEXES,
    TTL,
    Check,
    ConditionFailed,
    Item,
    Key,
    Page,
    Range,
    Write,
    applied,
    holds,
)
from tests.fakes.table import MemoryTable

Watch = Callable[[Sequence[Write], Sequence[Item | None]], None]
NOTHING = Page((), None)


class FastTable(MemoryTable):
    """`ports.Table` for many short lives."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: dict[str, dict[str, Item]] = {}
        self._due: dict[object, dict[Key, Item]] = {}
        self.changed: set[str] = set()
        self.version = 0
        self.watch: Watch = lambda writes, before: None

    def get(self, key: Key, *, consistent: bool = True) -> Item | None:
        return self._parts.get(key[0], {}).get(key[1])

    def write(self, *writes: Write) -> None:
        before = [self.get(write.key) for write in writes]
        pairs = list(zip(writes, before, strict=True))
        good = [holds(write.when, item) for write, item in pairs]
        if not all(good):
            raise ConditionFailed(
                tuple(None if ok else item or {} for ok, item in zip(good, before, strict=True))
            )
        for write, item in pairs:
            if not isinstance(write, Check):
                self.replace(write.key, applied(write, item))
        self.watch(writes, before)

    def replace(self, key: Key, item: Item | None) -> None:
        pk, sk = key
        self.version += 1
        self.changed.add(pk)
        part = self._parts.setdefault(pk, {})
        old = part.pop(sk, None)
        if old is not None and "due_shard" in old:
            self._due[old["due_shard"]].pop(key, None)
        if item is None:
            return
        part[sk] = item
        if "due_shard" in item and "due_at" in item:
            self._due.setdefault(item["due_shard"], {})[key] = item

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
        found = sorted(self._partition(index, hash, range), reverse=descending)
        if not found:
            return NOTHING
        if cursor is not None:
            start = from_cursor(index, hash, descending, cursor)
            found = [at for at in found if at != start and (at < start) == descending]
        page = found[:limit]
        items = tuple(self._parts[pk][sk] for _, pk, sk in page)
        more = len(found) > limit
        return Page(items, to_cursor(index, hash, descending, page[-1]) if more else None)

    def _partition(self, index: str | None, hash: str, range: Range) -> Iterator[Position]:
        places: Iterator[Position]
        if index is None:
            places = ((sk, hash, sk) for sk in self._parts.get(hash, ()))
        elif index == "due":
            here = self._due.get(hash, {})
            places = ((item["due_at"], *key) for key, item in here.items())
        else:
            hashed, sorts = INDEXES[index]
            places = (
                (item[sorts], pk, sk)
                for pk, part in self._parts.items()
                for sk, item in part.items()
                if item.get(hashed) == hash and sorts in item
            )
        low, high = range.low, range.high
        for at in places:
            if (low is None or at[0] >= low) and (high is None or at[0] <= high):  # type: ignore[operator]
                yield at

    def purge(self, now_seconds: int, limit: int = 100) -> tuple[Item, ...]:
        past = [
            (key, item)
            for key, item in self._all()
            if type(at := item.get(TTL)) is int and at <= now_seconds
        ][:limit]
        for key, _ in past:
            self.replace(key, None)
        return tuple(item for _, item in past)

    def items(self) -> list[Item]:
        return [dict(item) for _, item in sorted(self._all(), key=lambda pair: pair[0])]

    def partition(self, pk: str) -> list[Item]:
        """The items of one partition, in order."""
        return [item for _, item in sorted(self._parts.get(pk, {}).items())]

    def partitions(self, prefix: str) -> list[str]:
        """Which partitions there are."""
        return sorted(pk for pk, part in self._parts.items() if part and pk.startswith(prefix))

    def _all(self) -> Iterator[tuple[Key, Item]]:
        for pk, part in self._parts.items():
            for sk, item in part.items():
                yield (pk, sk), item


def expired_guards(table: FastTable, now: int) -> list[str]:
    """Remove the guards whose time is over; whose they were."""
    found = []
    for pk in table.partitions("GUARD#"):
        (guard,) = table.partition(pk)
        if cast("int", guard[TTL]) * 1000 <= now:
            table.replace((pk, "A"), None)
            found.append(str(guard["sandbox_id"]))
    return found
