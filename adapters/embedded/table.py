"""The Table on one SQLite file."""

from __future__ import annotations

import base64
import json
import sqlite3
from pathlib import Path
from typing import Any

from adapters import items
from sandbox_router import table
from sandbox_router.table import INDEXES, Item, Key, Page, Range, Write

from .file import File

# Columns have no type on purpose: SQLite would convert values to it, and 1 is not "1".
_COLUMNS = [
    "pk",
    "sk",
    "item",
    "ttl",
    *(f"{n}_{part}" for n in INDEXES for part in ("hash", "sort")),
]
_INDEX = """CREATE INDEX IF NOT EXISTS by_{0} ON items ({0}_hash, {0}_sort, pk, sk)
    WHERE {0}_hash NOT NULL"""
_SCHEMA = (
    f"CREATE TABLE IF NOT EXISTS items ({', '.join(_COLUMNS)}, PRIMARY KEY (pk, sk))",
    "CREATE INDEX IF NOT EXISTS by_ttl ON items (ttl) WHERE ttl NOT NULL",
    *(_INDEX.format(name) for name in INDEXES),
)
_GET = "SELECT item FROM items WHERE pk = ? AND sk = ?"
_STORE = f"INSERT OR REPLACE INTO items VALUES ({', '.join('?' * len(_COLUMNS))})"
_DELETE = "DELETE FROM items WHERE pk = ? AND sk = ?"
_PURGE = """DELETE FROM items WHERE rowid IN (SELECT rowid FROM items WHERE ttl <= ? LIMIT ?)
    RETURNING item"""
_BYTES = "\udc00"  # marks bytes in the text; as a lone surrogate no stored string can be it


class SqliteTable:
    """`ports.Table` for one machine: any number of threads, and a few processes."""

    def __init__(self, path: str | Path) -> None:
        self._file = File(path, *_SCHEMA)

    def get(self, key: Key, *, consistent: bool = True) -> Item | None:
        items.check_key(key)
        return next((_decode(text) for (text,) in self._file.read(_GET, *key)), None)

    def write(self, *writes: Write) -> None:
        items.check(writes)
        if writes:
            self._file.write(lambda db: _write(db, writes))

    def query(
        self,
        index: str | None,
        hash: str,
        range: Range = table.EVERYTHING,
        *,
        limit: int = 100,
        cursor: str | None = None,
        descending: bool = False,
    ) -> Page:
        items.check_query(index, hash, range, limit)
        by, sort = ("pk", "sk") if index is None else (f"{index}_hash", f"{index}_sort")
        order, beyond = ("DESC", "<") if descending else ("ASC", ">")
        where: dict[str, tuple[object, ...]] = {f"{by} = ?": (hash,)}
        if range.low is not None:
            where[f"{sort} >= ?"] = (range.low,)
        if range.high is not None:
            where[f"{sort} <= ?"] = (range.high,)
        if cursor is not None:
            position = items.from_cursor(index, hash, descending, cursor)
            where[f"({sort}, pk, sk) {beyond} (?, ?, ?)"] = position
        rows = self._file.read(
            f"SELECT item, {sort}, pk, sk FROM items WHERE {' AND '.join(where)} "
            f"ORDER BY {sort} {order}, pk {order}, sk {order} LIMIT ?",
            *(value for values in where.values() for value in values),
            limit + 1,
        )
        end = rows[limit - 1][1:] if len(rows) > limit else None
        return Page(
            tuple(_decode(row[0]) for row in rows[:limit]),
            end and items.to_cursor(index, hash, descending, end),
        )

    def purge(self, now_seconds: int, limit: int = 100) -> tuple[Item, ...]:
        """Delete items past their TTL, and return them: what the TTL service does elsewhere."""
        past = (now_seconds, limit)
        rows = self._file.write(lambda db: db.execute(_PURGE, past).fetchall())
        return tuple(_decode(text) for (text,) in rows)

    def close(self) -> None:
        self._file.close()


def _write(db: sqlite3.Connection, writes: tuple[Write, ...]) -> None:
    found = [db.execute(_GET, write.key).fetchone() for write in writes]
    pairs = [(write, row and _decode(row[0])) for write, row in zip(writes, found, strict=True)]
    old = tuple(None if table.holds(write.when, item) else (item or {}) for write, item in pairs)
    if any(item is not None for item in old):
        raise table.ConditionFailed(old)
    changes = [(w.key, items.after(w, i)) for w, i in pairs if not isinstance(w, table.Check)]
    for statement, row in [(_STORE, _row(k, i)) if i else (_DELETE, k) for k, i in changes]:
        db.execute(statement, row)


def _row(key: Key, item: Item) -> tuple[object, ...]:
    places, ttl = items.places(item), item.get(table.TTL)
    columns = [part for name in INDEXES for part in places.get(name, (None, None))]
    return (*key, _encode(item), ttl if type(ttl) is int else None, *columns)


def _encode(item: Item) -> str:
    return json.dumps(item, default=lambda raw: {_BYTES: base64.b64encode(raw).decode()})


def _decode(text: str) -> dict[str, Any]:
    item: dict[str, Any] = json.loads(text, object_hook=_untagged)
    return item


def _untagged(value: dict[str, Any]) -> object:
    return base64.b64decode(value[_BYTES]) if _BYTES in value else value
