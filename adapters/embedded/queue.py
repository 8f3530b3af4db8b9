"""The queues of one machine: durable, delayed, at least once."""

from __future__ import annotations

import math
import os
import sqlite3
import threading
from pathlib import Path

from sandbox_router.model.failure import StoreBusy
from sandbox_router.ports import Clock, Message
from sandbox_router.table import TableError

from .file import File

MAX_DELAY_SECONDS = 900
GRAIN_MS = 100

_SCHEMA = (  # AUTOINCREMENT: a receipt must never fit a later message
    "CREATE TABLE IF NOT EXISTS messages (id INTEGER PRIMARY KEY AUTOINCREMENT,"
    " queue, sandbox_id, due INTEGER, received INTEGER, boot)",
    "CREATE INDEX IF NOT EXISTS by_due ON messages (queue, due)",
    "CREATE INDEX IF NOT EXISTS by_sandbox ON messages (sandbox_id)",
)
_SEND = """INSERT INTO messages (queue, sandbox_id, due, received) SELECT ?1, ?2, ?3, 0
    WHERE NOT EXISTS (SELECT 1 FROM messages WHERE queue = ?1 AND sandbox_id = ?2
                      AND boot IS NULL AND max(due, ?4) = ?3)"""
_READY = """SELECT id, sandbox_id, received FROM messages WHERE queue = ? AND due <= ?
    ORDER BY due, id LIMIT ?"""
_TAKE = "UPDATE messages SET due = ?, boot = ?, received = received + 1 WHERE id = ?"
_MINE = "id = ? AND received = ? AND boot = ?"


def delayed(now: int, seconds: float) -> int:
    """When a message is due; rounded up, so that equal looks merge and none comes early."""
    if not seconds <= MAX_DELAY_SECONDS:
        raise ValueError(f"a delay is at most {MAX_DELAY_SECONDS} seconds")
    due = now + math.ceil(seconds * 1000)
    return -(-due // GRAIN_MS) * GRAIN_MS if seconds > 0 else now


class SqliteQueue:
    """`ports.Queue` and the worker's side of it.

    A message is in flight while `boot` names the object that received it, and due again when its
    visibility ends. There is one worker on the machine, so at its start whatever another boot
    holds belongs to a dead one: `reclaim`. Should two live after all, a look happens twice.
    """

    def __init__(self, path: str | Path, clock: Clock) -> None:
        self._file = File(path, *_SCHEMA)
        self._clock = clock
        self._boot = os.urandom(8).hex()
        self._sent = threading.Condition()

    def send(self, queue: str, record_id: str, delay_seconds: float = 0) -> None:
        # Merged only into a look still to come that is due at the same time, or was before now
        # when this one is for now: a look that comes early would miss its deadline.
        now = self._clock.now()
        self._write(_SEND, queue, record_id, delayed(now, delay_seconds), now)
        with self._sent:
            self._sent.notify_all()

    def receive(self, queue: str, limit: int, visibility_seconds: float, now: int) -> list[Message]:
        """What is due, the most overdue first, hidden from others for a while."""
        hidden = now + round(visibility_seconds * 1000)

        def take(db: sqlite3.Connection) -> list[Message]:
            rows = db.execute(_READY, (queue, now, limit)).fetchall()
            db.executemany(_TAKE, [(hidden, self._boot, row[0]) for row in rows])
            return [Message(name, f"{row}:{seen + 1}", seen + 1) for row, name, seen in rows]

        try:
            ready = self._file.read(_READY, queue, now, 1)  # polling an empty queue writes nothing
            return self._file.write(take) if ready else []
        except TableError as error:
            raise StoreBusy from error

    def done(self, message: Message) -> None:
        """Forget it, unless it is somebody else's by now."""
        self._write(f"DELETE FROM messages WHERE {_MINE}", *self._mine(message))

    def later(self, message: Message, seconds: float) -> None:
        """Let it wait again, unless it is somebody else's by now."""
        due = delayed(self._clock.now(), seconds)
        wait = f"UPDATE messages SET due = ?, boot = NULL WHERE {_MINE}"
        self._write(wait, due, *self._mine(message))

    def reclaim(self) -> int:
        """Make what another boot left in flight waiting and due; how many."""
        wait = "UPDATE messages SET due = ?, boot = NULL WHERE boot <> ?"
        return self._write(wait, self._clock.now(), self._boot)

    def waiting(self, queue: str) -> int:
        """How many messages nobody has in hand."""
        count = "SELECT count(*) FROM messages WHERE queue = ? AND boot IS NULL"
        return int(self._file.read(count, queue)[0][0])

    def wait(self, seconds: float) -> None:
        """Until this object sends something, at most this long."""
        with self._sent:
            self._sent.wait(seconds)

    def close(self) -> None:
        self._file.close()

    def _mine(self, message: Message) -> tuple[int, int, str]:
        row, received = message.receipt.split(":")
        return int(row), int(received), self._boot

    def _write(self, statement: str, *values: object) -> int:
        try:
            return self._file.write(lambda db: db.execute(statement, values).rowcount)
        except TableError as error:
            raise StoreBusy from error
