"""Commands in an OpenSandbox sandbox: started detached, then their log and status are read.

In the foreground execd tells output line by line as text: line ends are lost, and what is no UTF-8
becomes U+FFFD. Only the log of a detached command has its bytes as they are; it holds stdout and
stderr in one. So bytes are exact here and the two streams are not told apart.
Facts: specs/execd-api.yaml and components/execd at 3bb6fad (runtime/command.go,
runtime/command_common.go, web/controller/command.go), and the SDK opensandbox 1.1.1.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from sandbox_router.model.failure import (
    Gone,
    PoolUnsupported,
    ProtocolBroken,
    ProviderFailure,
    Rejected,
    Unknown,
)
from sandbox_router.ports import Command, Exit, Output, Ref

from ..answer import Verdicts, parse
from ..http import Incoming
from . import agent, declare, wire
from .agent import Agents

START_SECONDS = 10.0
EVENTS_LIMIT = 1_000_000
DRAIN_SECONDS = 0.02
GRACE = 0.4  # what execd may take to end the command itself
INTERRUPT_SECONDS = 1.0
NOTICED_SECONDS = 2.0  # execd notes a command a moment after it says that it started it
MISSES = 3
FIRST_PAUSE, LONGEST_PAUSE = 0.01, 0.1
CURSOR = "execd-commands-tail-cursor"
NOT_YET = Verdicts(
    {(404, "INVALID_REQUEST_BODY"): PoolUnsupported, **agent.STARTS.rows}, wire.code_of
)


def run(agents: Agents, ref: Ref, command: Command) -> Iterator[Output | Exit]:
    """Output as it comes, all of it as stdout, then one Exit. Closing the iterator early ends the
    command.

    Raises a Refused class only when nothing was started; Unknown when the answer is lost.
    """
    if command.stdin is not None:
        raise PoolUnsupported("OpenSandbox gives commands no input")
    running = _Running(agents, ref, command)
    try:
        yield from running.follow()
    except GeneratorExit:
        running.interrupt()
        raise
    except ProviderFailure:
        # What becomes of it is not known: without its answer it must not go on for long.
        running.interrupt()
        raise


class _Running:
    """One command on its way."""

    def __init__(self, agents: Agents, ref: Ref, command: Command) -> None:
        self._agents, self._ref = agents, ref
        self._over = time.monotonic() + command.timeout_seconds
        self._cursor = 0
        self._ended = False
        self._id = self._start(command)
        self._started = time.monotonic()

    def follow(self) -> Iterator[Output | Exit]:
        """Read what there is until it is over."""
        pause, misses = FIRST_PAUSE, 0
        while True:
            read = False
            try:
                status = self._status()
                if status is not None:
                    for output in self._log():
                        read = True
                        yield output
                    misses = 0
            except (Gone, ProtocolBroken):
                raise
            except ProviderFailure:
                # Reading may be repeated; a refusal to read says nothing of the command.
                misses += 1
                if read or misses > MISSES:
                    raise Unknown from None
                status = None
            if status is not None and status.get("running") is False:
                self._ended = True
                yield self._exit(status)
                return
            if time.monotonic() >= self._over + GRACE:
                self.interrupt()
                yield Exit(None, timed_out=True)
                return
            time.sleep(pause)
            pause = min(pause * 1.5, LONGEST_PAUSE)

    def interrupt(self) -> None:
        """End it, unless it has ended; a command that is over does not hear it."""
        if self._ended:
            return
        self._ended = True
        query = f"id={self._id}"
        call = self._agents.call(self._ref, "DELETE", "/command", agent.STARTS, query=query)
        try:
            self._agents.http.call(replace(call, timeout=INTERRUPT_SECONDS))
        except ProviderFailure:
            return  # its timeout ends it

    def _start(self, command: Command) -> str:
        call = self._agents.call(self._ref, "POST", "/command", agent.STARTS)
        call = agent.carrying(call, "application/json", _body(command), START_SECONDS)
        found: str | None = None
        try:
            with self._agents.http.stream(call) as incoming:
                for event in _events(incoming):
                    kind = event.get("type")
                    if kind == "init":
                        found = declare.safe_id(event.get("text"))
                    elif kind == "execution_complete":
                        # To the last byte, which frees the connection; but nobody waits for it.
                        incoming.deadline.within(DRAIN_SECONDS)
                    elif kind == "error" or kind is None:
                        raise Rejected("The command could not be started")
        except ProtocolBroken:
            raise
        except Unknown:
            pass  # known by its id, it is found again
        if found is None:
            raise Unknown
        return found

    def _status(self) -> Mapping[str, Any] | None:
        """How it stands; None while execd has not noted it yet."""
        call = self._agents.call(self._ref, "GET", f"/command/status/{self._id}", NOT_YET)
        try:
            return self._agents.http.call(call).object()
        except PoolUnsupported:
            if time.monotonic() < self._started + NOTICED_SECONDS:
                return None
        raise Unknown  # execd has forgotten it

    def _log(self) -> Iterator[Output]:
        query = f"cursor={self._cursor}"
        call = self._agents.call(
            self._ref, "GET", f"/command/{self._id}/logs", agent.STARTS, query=query
        )
        left = max(call.timeout, self._over - time.monotonic())
        with self._agents.http.stream(replace(call, timeout=left)) as incoming:
            told = incoming.headers.get(CURSOR, "")
            if not (told.isascii() and told.isdecimal() and len(told) < 20):
                raise ProtocolBroken
            yield from (Output("stdout", chunk) for chunk in incoming.chunks() if chunk)
            self._cursor = int(told)

    def _exit(self, status: Mapping[str, Any]) -> Exit:
        code, error = status.get("exit_code"), str(status.get("error", ""))
        if isinstance(code, bool) or not isinstance(code, int | None):
            raise ProtocolBroken
        if code is not None and code >= 0:
            return Exit(code)
        if time.monotonic() >= self._over:
            return Exit(None, timed_out=True)  # execd ends a command at its timeout by a signal
        return Exit(None, signal=declare.signal(error))


def _body(command: Command) -> bytes:
    # `exec`: the program itself, not a shell's builtin of the same name, and no shell above it.
    argv = command.argv
    text = command.shell or "" if argv is None else f"exec {shlex.join(argv)}"
    body: dict[str, Any] = {
        "command": text,
        "background": True,
        "timeout": max(1, round(command.timeout_seconds * 1000)),
        "envs": {name: value.reveal() for name, value in command.env.items()},
    }
    if command.cwd is not None:
        body["cwd"] = declare.path(command.cwd)
    return wire.document(body)


def _events(incoming: Incoming) -> Iterator[Mapping[str, Any]]:
    """The events of a stream; execd writes bare JSON, newer servers `data: ` before it."""
    buffer, size = bytearray(), 0
    for chunk in incoming.chunks():
        buffer += chunk
        size += len(chunk)
        if size > EVENTS_LIMIT:
            raise ProtocolBroken
        while (end := buffer.find(b"\n\n")) >= 0:
            yield from _event(bytes(buffer[:end]))
            del buffer[: end + 2]
    yield from _event(bytes(buffer))


def _event(frame: bytes) -> Iterator[Mapping[str, Any]]:
    lines = [line.removeprefix(b"data:").strip() for line in frame.splitlines()]
    if text := b"".join(line for line in lines if line[:1] == b"{"):
        yield parse(text, dict)
