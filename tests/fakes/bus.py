"""A bus and dead letters in memory; `down` counts the calls that still fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sandbox_router.model.event import Event
from sandbox_router.model.failure import StoreBusy


class MemoryBus:
    """`ports.Bus` and `ports.DeadLetters`."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.letters: list[Mapping[str, Any]] = []
        self.down = 0

    def publish(self, events: Sequence[Event]) -> None:
        self._up()
        self.events.extend(events)

    def add(self, letter: Mapping[str, Any]) -> None:
        self._up()
        self.letters.append(letter)

    def _up(self) -> None:
        if self.down:
            self.down -= 1
            raise StoreBusy
