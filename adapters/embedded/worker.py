"""The worker of one machine: takes messages, looks at sandboxes, keeps house."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial

from sandbox_router.ports import Clock, Message

from .queue import SqliteQueue

QUEUES = ("create", "teardown")
POLL_SECONDS, VISIBILITY_SECONDS, SWEEP_SECONDS, DRAIN_SECONDS = 0.05, 120.0, 60.0, 2.0
_LOG = logging.getLogger(__name__)


class WorkerLoop:
    """Threads per queue, so that teardown never waits behind creates, and one per chore.

    chores: (every so many seconds, what), each also at the start.
    """

    def __init__(
        self,
        queue: SqliteQueue,
        advance: Callable[[str], object],
        sweep: Callable[[], object],
        clock: Clock,
        *,
        chores: Sequence[tuple[float, Callable[[], object]]] = (),
        threads: int = 8,
    ) -> None:
        self._queue, self._advance, self._clock = queue, advance, clock
        self._stopping = threading.Event()
        self._turns = {name: threading.Lock() for name in QUEUES}
        mains = [partial(self._work, name) for name in QUEUES for _ in range(threads)]
        mains += [partial(self._keep, *each) for each in ((SWEEP_SECONDS, sweep), *chores)]
        self._threads = [threading.Thread(target=main, daemon=True) for main in mains]

    def start(self) -> None:
        """Take up what a dead worker had in hand, then work."""
        self._queue.reclaim()
        for thread in self._threads:
            thread.start()

    def stop(self) -> bool:
        """Take nothing new, give what runs two seconds; whether all came to rest."""
        self._stopping.set()
        end = time.monotonic() + DRAIN_SECONDS
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def _work(self, queue: str) -> None:
        while not self._stopping.is_set():
            try:
                if message := self._next(queue):
                    self._look(message)
            except Exception as error:
                _failed(error)
                self._stopping.wait(1)

    def _next(self, queue: str) -> Message | None:
        with self._turns[queue]:  # one idle thread polls, the others wait for their turn
            while not self._stopping.is_set():
                now = self._clock.now()
                if found := self._queue.receive(queue, 1, VISIBILITY_SECONDS, now):
                    return found[0]
                self._queue.wait(POLL_SECONDS)
        return None

    def _look(self, message: Message) -> None:
        try:
            self._advance(message.record_id)
        except Exception as error:
            _failed(error)
            self._queue.later(message, min(60, 2 ** min(message.received - 1, 6)))
        else:
            self._queue.done(message)

    def _keep(self, seconds: float, chore: Callable[[], object]) -> None:
        while not self._stopping.is_set():
            try:
                chore()
            except Exception as error:
                _failed(error)
            self._stopping.wait(seconds)


def _failed(error: Exception) -> None:
    # The class alone: a message may hold values that no log may show.
    _LOG.warning("background work failed: %s", type(error).__name__)
