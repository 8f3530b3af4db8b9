"""The durable queue switched off for a test: of what is sent, only what the sweep sends arrives."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import TypeVar

from sandbox_router.ports import Queue

T = TypeVar("T")


class Forgetful:
    """`ports.Queue` that loses every message but those of `keeping`."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._keeps: ContextVar[bool] = ContextVar("keeps", default=False)

    def send(self, queue: str, record_id: str, delay_seconds: float = 0) -> None:
        if self._keeps.get():
            self._queue.send(queue, record_id, delay_seconds)

    def keeping(self, work: Callable[[], T]) -> T:
        """Do some work whose messages arrive."""
        before = self._keeps.set(True)
        try:
            return work()
        finally:
            self._keeps.reset(before)
