"""An iterator read in a thread of its own, a few items ahead of whoever takes them."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from contextvars import copy_context
from typing import Generic, TypeVar

T = TypeVar("T")


class Over(Exception):
    """There is nothing more to take."""


class Late(Exception):
    """The time for all of it is over, and the iterator was left."""


class Reader(Generic[T]):
    """Items of `source`, taken by one thread and given by another.

    The source runs and is closed in the reader's thread only: a generator at work cannot be closed
    from outside. So `close` reaches a silent source at its next item; whoever wants it sooner
    yields signs of life. room: items kept ahead, after which the source is not asked. seconds: for
    all of it, since a client that reads nothing must not hold the source for ever.
    """

    def __init__(self, source: Iterator[T], *, room: int, seconds: float) -> None:
        self._source, self._room = source, room
        self._until = time.monotonic() + seconds
        self._ready: deque[T] = deque()
        self._failure: Exception | None = None
        self._ended = self._closed = False
        self._changed = threading.Condition()
        # The context tells whose work this is, and counts what it waits for.
        run = copy_context().run
        self._thread = threading.Thread(target=run, args=(self._read,), daemon=True)
        self._thread.start()

    def begun(self, seconds: float) -> None:
        """Wait for the first item, at most so long; without one raises Over or what the source
        raised.
        """
        with self._changed:
            self._changed.wait_for(self._news, seconds)
            if self._ended and not self._ready:
                raise self._failure or Over

    def take(self, seconds: float) -> T | None:
        """The next item, None when there is none in time; raises Over, Late or what the source
        raised, after the last item.
        """
        with self._changed:
            self._changed.wait_for(self._news, min(seconds, max(0.0, self._left())))
            if self._closed:
                raise Over
            if self._ready:
                item = self._ready.popleft()
                self._changed.notify_all()
                return item
            if self._ended:
                raise self._failure or Over
            if self._left() <= 0:
                raise Late
            return None

    def close(self, seconds: float = 0.0) -> None:
        """Give up the rest, and wait a little for the source to be closed. From any thread."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread is not threading.current_thread():
            self._thread.join(seconds)

    @property
    def closed(self) -> bool:
        """Was it given up?"""
        return self._closed

    def _news(self) -> bool:
        return bool(self._ready) or self._ended or self._closed

    def _left(self) -> float:
        return self._until - time.monotonic()

    def _read(self) -> None:
        failure: Exception | None = None
        try:
            while self._wanted():
                self._put(next(self._source))
        except StopIteration:
            pass
        except Exception as error:
            failure = error
        if (close := getattr(self._source, "close", None)) is not None:
            with suppress(Exception):
                close()
        with self._changed:
            self._failure, self._ended = failure, True
            self._changed.notify_all()

    def _wanted(self) -> bool:
        """Wait for room; False when nobody takes anything any more."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._has_room(), max(0.0, self._left()))
            if not self._closed and not self._has_room():
                raise Late
            return not self._closed

    def _has_room(self) -> bool:
        return len(self._ready) < self._room

    def _put(self, item: T) -> None:
        with self._changed:
            self._ready.append(item)
            self._changed.notify_all()
