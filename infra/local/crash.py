"""CRASH_AT: die right before the n-th call through a port made on behalf of a sandbox.

Counted are calls of the table, the queue and the providers while a request is served or a sandbox
is advanced, from the first create on. Start-up, polling, key look-ups and sweeps are not counted,
so that the same story counts the same calls every time.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar, cast

from infra.local.proxy_event import Call

T = TypeVar("T")
CREATE = ("POST", "/v1/sandboxes")
_acting: ContextVar[bool] = ContextVar("acting", default=False)


@contextmanager
def acting() -> Iterator[None]:
    """What happens inside is done on behalf of sandboxes."""
    before = _acting.set(True)
    try:
        yield
    finally:
        _acting.reset(before)


class Counter:
    """Counts calls once armed; writes their names to `log`, and dies at the n-th."""

    def __init__(self, crash_at: int | None, log: Path) -> None:
        self._crash_at = crash_at
        self._log = log
        self._armed = False
        self._count = 0
        self._lock = threading.Lock()

    @contextmanager
    def serving(self, call: Call) -> Iterator[None]:
        """Count what a request does, from the first create on."""
        self._armed = self._armed or (call.method, call.path) == CREATE
        with acting():
            yield

    def note(self, name: str) -> None:
        """A port is about to be called."""
        if not (self._armed and _acting.get()):
            return
        with self._lock:
            self._count += 1
            with self._log.open("a") as log:
                log.write(f"{self._count} {name}\n")
            if self._count == self._crash_at:
                os.kill(os.getpid(), signal.SIGKILL)

    def wrap(self, port: T) -> T:
        """The same port, counted. A class of its own, so that it still shows its abilities."""
        name = type(port).__name__
        members = {
            attr: self._counted(port, attr, f"{name}.{attr}")
            if callable(getattr(type(port), attr, None))
            else _shown(port, attr)
            for attr in dir(port)
            if not attr.startswith("_")
        }
        return cast(T, type(f"Counted{name}", (), members)())

    def _counted(self, port: object, attr: str, name: str) -> Callable[..., Any]:
        def call(_: object, *args: Any, **kwargs: Any) -> Any:
            self.note(name)
            return getattr(port, attr)(*args, **kwargs)

        return call


def _shown(port: object, attr: str) -> property:
    return property(lambda _: getattr(port, attr))
