"""Events and dead letters of one machine: lines of JSON in a private file, on the disk at once."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sandbox_router.model.event import SOURCE, Event
from sandbox_router.model.failure import StoreBusy
from sandbox_router.model.view import timestamp


class Journal:
    """`ports.Bus` and `ports.DeadLetters` on a file that only grows; more processes may write it.

    Each call is one write at the file's end: a line is whole, or the last one of a crash, which
    the next write leaves on a line of its own.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()

    def publish(self, events: Sequence[Event]) -> None:
        self._append([_line(event) for event in events])

    def add(self, letter: Mapping[str, Any]) -> None:
        self._append([letter])

    def _append(self, lines: Sequence[Mapping[str, Any]]) -> None:
        text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
        try:
            with self._lock:
                self._write(text.encode())
        except OSError as error:
            raise StoreBusy from error

    def _write(self, data: bytes) -> None:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        file = os.open(self._path, flags, 0o600)
        try:
            size = os.fstat(file).st_size
            if size and os.pread(file, 1, size - 1) != b"\n":
                data = b"\n" + data
            if os.write(file, data) != len(data):
                raise StoreBusy
            os.fsync(file)
        finally:
            os.close(file)


def _line(event: Event) -> dict[str, Any]:
    """As EventBridge would deliver it."""
    return {
        "id": event.id,
        "source": SOURCE,
        "detail-type": event.type,
        "time": timestamp(event.at),
        "detail": dict(event.detail),
    }
