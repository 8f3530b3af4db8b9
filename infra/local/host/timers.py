"""Deadlines of many instances on one heap and one timer."""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Callable

# A suspended machine stops the loop's clock but not ours; this bounds how late that shows.
_LONGEST_SLEEP = 30.0


def clock() -> float:
    """Return seconds that no clock change moves and that count while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Deadlines:
    """Calls back with each key whose deadline has passed; setting a key again replaces it."""

    def __init__(self, due: Callable[[str], None]) -> None:
        self._due = due
        self._heap: list[tuple[float, str]] = []
        self._current: dict[str, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def set(self, key: str, at: float) -> None:
        """Set or move the deadline of a key, on `clock()`."""
        self._current[key] = at
        heapq.heappush(self._heap, (at, key))
        self._arm()

    def drop(self, key: str) -> None:
        """Forget a key; its entry on the heap is skipped when it comes up."""
        self._current.pop(key, None)

    def close(self) -> None:
        """Call back no more."""
        self._current.clear()
        self._heap.clear()
        if self._timer is not None:
            self._timer.cancel()

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._heap and self._current.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        if self._heap:
            wait = min(max(0.0, self._heap[0][0] - clock()), _LONGEST_SLEEP)
            self._timer = asyncio.get_running_loop().call_later(wait, self._fire)

    def _fire(self) -> None:
        self._timer = None
        now = clock()
        while self._heap and self._heap[0][0] <= now:
            at, key = heapq.heappop(self._heap)
            if self._current.get(key) == at:
                del self._current[key]
                self._due(key)
        self._arm()
