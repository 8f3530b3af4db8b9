"""A clock that moves only when told."""

from __future__ import annotations

import threading

START = 1_893_456_000_000
"""2030-01-01T00:00:00Z in ms."""


class FakeClock:
    """`ports.Clock`: sleeping is instant and moves the time; it never goes back."""

    def __init__(self, ms: int = START) -> None:
        self._ms = ms
        self._lock = threading.Lock()

    def now(self) -> int:
        return self._ms

    def sleep(self, seconds: float) -> None:
        with self._lock:
            self._ms += max(0, round(seconds * 1000))

    def off(self, ms: int) -> SkewedClock:
        """The same time as a machine has it whose clock is wrong."""
        return SkewedClock(self, ms)

    def at(self, ms: int) -> None:
        """Move to this moment, unless it is past."""
        with self._lock:
            self._ms = max(self._ms, ms)


class SkewedClock:
    """`ports.Clock`: another clock, so many milliseconds ahead."""

    def __init__(self, right: FakeClock, ahead_ms: int) -> None:
        self._right, self._ahead_ms = right, ahead_ms

    def now(self) -> int:
        return self._right.now() + self._ahead_ms

    def sleep(self, seconds: float) -> None:
        self._right.sleep(seconds)
