"""What a stream is elsewhere: new items of the SQLite table, in the order of their commits."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from adapters.embedded.file import File

PAGE = 100
# AUTOINCREMENT: a number must never come again, not even after the last row is gone.
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS feed (n INTEGER PRIMARY KEY AUTOINCREMENT, item)",
    "CREATE TRIGGER IF NOT EXISTS fed AFTER INSERT ON items WHEN substr(NEW.pk, 1, 4) = 'LOG#'"
    " BEGIN INSERT INTO feed (item) VALUES (NEW.item); END",
)
_NEXT = "SELECT n, item FROM feed WHERE n > ? ORDER BY n LIMIT ?"
_FORGET = "DELETE FROM feed WHERE n <= ?"


class Feed:
    """The audit entries of a table's file, each in the transaction that stored it. One reader,
    whose place says what need not be kept any longer.
    """

    def __init__(self, path: Path) -> None:
        """The table must be there already."""
        self._file = File(path, *_SCHEMA)

    def __call__(self, place: str | None) -> tuple[Sequence[Mapping[str, Any]], str | None]:
        """Items behind a place, and the place behind them."""
        told = int(place or 0)
        rows = self._file.read(_NEXT, told, PAGE)
        if not rows:
            return (), place
        if place is not None:
            self._file.write(lambda db: _forget(db, told))
        return [json.loads(item) for _, item in rows], str(rows[-1][0])

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


def _forget(db: sqlite3.Connection, told: int) -> None:
    db.execute(_FORGET, (told,))
