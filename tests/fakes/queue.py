"""The queue in memory, on any clock."""

from __future__ import annotations

import itertools
import threading
from dataclasses import dataclass

from adapters.embedded.queue import delayed
from sandbox_router.ports import Clock, Message


@dataclass
class _Entry:
    queue: str
    record_id: str
    due: int
    received: int = 0
    boot: int | None = None


class MemoryQueue:
    """`ports.Queue` and the worker's side of it; `restart` is the death of its worker."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._boot = 1
        self._numbers = itertools.count(1)
        self._entries: dict[int, _Entry] = {}
        self._changed = threading.Condition()

    def send(self, queue: str, record_id: str, delay_seconds: float = 0) -> None:
        now = self._clock.now()
        due = delayed(now, delay_seconds)
        with self._changed:
            for entry in self._entries.values():
                same = (entry.queue, entry.record_id) == (queue, record_id)
                if same and entry.boot is None and max(entry.due, now) == due:
                    return
            self._entries[next(self._numbers)] = _Entry(queue, record_id, due)
            self._changed.notify_all()

    def receive(self, queue: str, limit: int, visibility_seconds: float, now: int) -> list[Message]:
        with self._changed:
            ready = [
                (entry.due, number, entry)
                for number, entry in self._entries.items()
                if entry.queue == queue and entry.due <= now
            ]
            taken = sorted(ready, key=lambda each: each[:2])[:limit]
            for _, _, entry in taken:
                entry.due = now + round(visibility_seconds * 1000)
                entry.received += 1
                entry.boot = self._boot
            return [
                Message(entry.record_id, f"{number}:{entry.received}", entry.received)
                for _, number, entry in taken
            ]

    def done(self, message: Message) -> None:
        with self._changed:
            if self._mine(message):
                del self._entries[int(message.receipt.partition(":")[0])]

    def later(self, message: Message, seconds: float) -> None:
        with self._changed:
            if entry := self._mine(message):
                entry.due, entry.boot = delayed(self._clock.now(), seconds), None
                self._changed.notify_all()

    def _mine(self, message: Message) -> _Entry | None:
        number, _, received = message.receipt.partition(":")
        entry = self._entries.get(int(number))
        if entry and entry.boot == self._boot and entry.received == int(received):
            return entry
        return None

    def reclaim(self) -> int:
        """Make what another boot left in flight waiting and due; how many."""
        with self._changed:
            left = [e for e in self._entries.values() if e.boot not in (None, self._boot)]
            for entry in left:
                entry.due, entry.boot = self._clock.now(), None
            return len(left)

    def waiting(self, queue: str) -> int:
        """How many messages nobody has in hand."""
        with self._changed:
            return sum(e.queue == queue and e.boot is None for e in self._entries.values())

    def wait(self, seconds: float) -> None:
        """Until something is sent, at most this long in real time."""
        with self._changed:
            self._changed.wait(seconds)

    def restart(self) -> None:
        """Another process owns the queue from here: what was received is nobody's until
        `reclaim`, or until its visibility ends."""
        with self._changed:
            self._boot += 1

    def due(self, now: int) -> list[tuple[str, str]]:
        """(queue, sandbox id) of what `receive` would give now, the most overdue first."""
        with self._changed:
            ready = [(e.due, n, e) for n, e in self._entries.items() if e.due <= now]
        return [
            (entry.queue, entry.record_id) for _, _, entry in sorted(ready, key=lambda x: x[:2])
        ]

    def next_due(self) -> int | None:
        """The earliest moment at which something is there to receive."""
        with self._changed:
            return min((entry.due for entry in self._entries.values()), default=None)
