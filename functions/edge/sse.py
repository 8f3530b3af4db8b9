"""A command as server-sent events: `started`, `stdout`, `stderr`, then one of exit, error, timeout.

Every event has a number, rising by one, and JSON on one line of ASCII: whatever a command writes is
escaped in it, so it can neither end a line nor an event, also for clients that take more than CR
and LF for the end of a line. Text is decoded across the borders of chunks. `text` has replacement
signs where the bytes are no UTF-8; then, and only then, `b64` has them exactly.
"""

from __future__ import annotations

import base64
import codecs
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sandbox_router.model.failure import Failure, Internal, Unknown
from sandbox_router.model.problem import problem
from sandbox_router.ports import Clock, Exit, Output

from .log import unexpected
from .reader import Late, Over, Reader

KIND = "text/event-stream"
PING = b": ping\n\n"
PIECE = 32 * 1024
"""Bytes of output in one event."""
Data = Mapping[str, Any]


@dataclass(frozen=True)
class Pace:
    """Seconds. ping: of silence before a comment. first: to wait for a refusal that can still have
    its own status. slack: over the command's own time, for all of the stream. ending: for the
    command's end when the client is gone. ahead: chunks read before they can be sent.
    """

    ping: float = 15.0
    first: float = 2.0
    slack: float = 30.0
    ending: float = 6.0
    ahead: int = 4


PACE = Pace()


@dataclass(frozen=True)
class Run:
    """What the events say besides the output. limit: bytes told of each stream; None is all."""

    exec_id: str
    stderr_mode: str
    request_id: str
    clock: Clock
    limit: int | None
    seconds: float


class Frames:
    """The frames of one command's stream. `waited`: seconds until the provider had begun."""

    def __init__(self, output: Iterator[Output | Exit], run: Run, pace: Pace | None = None) -> None:
        """Start it; raises what the provider refuses before the stream has begun."""
        self._pace = pace or PACE
        seconds = run.seconds + self._pace.slack
        self._reader = Reader(output, room=self._pace.ahead, seconds=seconds)
        began = time.monotonic()
        try:
            self._reader.begun(self._pace.first)
        except Over:
            raise Unknown from None
        self.waited = time.monotonic() - began
        self._frames = _Events(self._reader, run).frames(self._pace.ping)

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        return next(self._frames)

    def close(self) -> None:
        """End it, and the command with it. From any thread, also while a frame is waited for."""
        self._reader.close(self._pace.ending)


class _Events:
    def __init__(self, reader: Reader[Output | Exit], run: Run) -> None:
        self._reader, self._run = reader, run
        self._began, self._number = run.clock.now(), 0
        self._streams = {name: Written(run.limit) for name in ("stdout", "stderr")}

    def frames(self, ping: float) -> Iterator[bytes]:
        run = self._run
        yield self._event("started", {"exec_id": run.exec_id, "stderr_mode": run.stderr_mode})
        try:
            yield from self._told(ping)
        except Over:
            if not self._reader.closed:
                yield from self._error(Unknown())
        except Late:
            self._reader.close()
            yield from self._error(Unknown("The output was not taken in time"))
        except Failure as failure:
            yield from self._error(failure)
        except Exception as error:
            unexpected(error, operation="run_command", request_id=run.request_id)
            yield from self._error(Internal())

    def _told(self, ping: float) -> Iterator[bytes]:
        """All that the command says, to its end."""
        spoke = time.monotonic()
        while True:
            item = self._reader.take(max(0.0, spoke + ping - time.monotonic()))
            frames: Iterator[bytes] = iter(())
            if isinstance(item, Exit):
                yield from self._end(item)
                return
            if item is not None:  # perhaps an empty one, a sign of life: still silence
                told = self._streams[item.stream].take(item.data)
                frames = (self._event(item.stream, data) for data in told)
            elif time.monotonic() >= spoke + ping:
                frames = iter((PING,))
            for frame in frames:
                yield frame
                spoke = time.monotonic()

    def _end(self, end: Exit) -> Iterator[bytes]:
        yield from self._rest()
        data: dict[str, Any] = {} if end.signal is None else {"signal": end.signal}
        data["duration_ms"] = max(0, self._run.clock.now() - self._began)
        data["truncated"] = {f"{name}_bytes": one.cut for name, one in self._streams.items()}
        if end.timed_out:
            yield self._event("timeout", data)
        else:
            yield self._event("exit", {"exit_code": end.exit_code, **data})

    def _error(self, failure: Failure) -> Iterator[bytes]:
        yield from self._rest()
        yield self._event("error", problem(failure, self._run.request_id))

    def _rest(self) -> Iterator[bytes]:
        for name, stream in self._streams.items():
            for data in stream.rest():
                yield self._event(name, data)

    def _event(self, name: str, data: Data) -> bytes:
        self._number += 1
        text = json.dumps(data, separators=(",", ":"), allow_nan=False)
        return f"id: {self._number}\nevent: {name}\ndata: {text}\n\n".encode("ascii")


class Written:
    """One stream's bytes as data of events; `cut`: bytes over the limit, which are in none."""

    def __init__(self, limit: int | None) -> None:
        self._left, self._held = limit, b""
        self.cut = 0

    def take(self, data: bytes) -> Iterator[Data]:
        """What can be told of it now: half a character waits for its other half."""
        kept = data[: self._left]
        self.cut += len(data) - len(kept)
        if self._left is not None:
            self._left -= len(kept)
        for at in range(0, len(kept), PIECE):
            held = self._held + kept[at : at + PIECE]
            text, used = codecs.utf_8_decode(held, "replace", False)
            self._held = held[used:]
            yield from _told(text, held[:used])

    def rest(self) -> Iterator[Data]:
        """What was held back, unless it is a character the limit cut in two."""
        held, self._held = self._held, b""
        if self.cut:
            self.cut += len(held)
        else:
            yield from _told(held.decode("utf-8", "replace"), held)


def _told(text: str, data: bytes) -> Iterator[Data]:
    if not data:
        return
    exact = text.encode() == data
    yield {"text": text} if exact else {"text": text, "b64": base64.b64encode(data).decode()}
