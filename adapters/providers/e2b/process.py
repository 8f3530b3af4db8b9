"""Commands in an E2B sandbox: Connect's streaming `process.Process/Start`, once per command.

Facts: process.proto of github.com/e2b-dev/infra at 54693ff; headers as the SDK e2b 2.63.0 sends.
"""

from __future__ import annotations

import base64
import re
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from sandbox_router.model.failure import (
    PoolUnsupported,
    ProtocolBroken,
    ProviderFailure,
    Unknown,
)
from sandbox_router.ports import Command, Exit, Output, Ref

from ..answer import parse
from ..http import Call, Incoming
from . import declare, envd, wire
from .envd import Agents, agent_version

FRAME_LIMIT = 4_000_000
GRACE = 0.25  # what envd may take to end the command itself
KILL_SECONDS = 0.6
TRAILER_SECONDS = 0.5
STDIN_CHUNK = 32_768
_SIGNALS = {
    "hangup": "SIGHUP",
    "interrupt": "SIGINT",
    "quit": "SIGQUIT",
    "illegal instruction": "SIGILL",
    "trace/breakpoint trap": "SIGTRAP",
    "aborted": "SIGABRT",
    "bus error": "SIGBUS",
    "floating point exception": "SIGFPE",
    "killed": "SIGKILL",
    "user defined signal 1": "SIGUSR1",
    "segmentation fault": "SIGSEGV",
    "user defined signal 2": "SIGUSR2",
    "broken pipe": "SIGPIPE",
    "alarm clock": "SIGALRM",
    "terminated": "SIGTERM",
    "CPU time limit exceeded": "SIGXCPU",
    "file size limit exceeded": "SIGXFSZ",
}
"""How Go, which envd is written in, spells signals on Linux."""


def run(agents: Agents, ref: Ref, command: Command) -> Iterator[Output | Exit]:
    """Output as it comes, then one Exit. Closing the iterator early kills the command.

    Nothing is sent before the first item is asked for.

    Raises a Refused class only when nothing was started; Unknown when the answer is lost.
    """
    started = time.monotonic()
    if command.stdin is not None and agent_version(ref) < declare.STDIN_CLOSES:
        raise PoolUnsupported("This sandbox's agent cannot end a command's input")
    running = _Running(agents, ref, command, started)
    with agents.http.stream(_start(agents, ref, command)) as incoming:
        yield from running.events(incoming)


class _Running:
    """One command on its way. `pid` is None until it is known to run."""

    def __init__(self, agents: Agents, ref: Ref, command: Command, started: float) -> None:
        self._agents, self._ref, self._command = agents, ref, command
        self._over = started + command.timeout_seconds
        self._pid: int | None = None
        self._cut_short = False

    def events(self, incoming: Incoming) -> Iterator[Output | Exit]:
        """What the stream says, as the port says it."""
        end: Exit | None = None
        try:
            for last, message in _frames(incoming):
                if last:
                    end = end or self._without_end(message)
                else:
                    event = _object(message.get("event"))
                    yield from _outputs(event)
                    end = self._noted(event) or end
                if end is not None:
                    # Read to the last byte: that frees the connection for the next call. But
                    # nobody waits for it long.
                    incoming.deadline.within(TRAILER_SECONDS)
        except GeneratorExit:
            self._abandon(end)
            raise
        except ProtocolBroken:
            raise
        except Unknown:
            end = end or self._lost()
        yield self._checked(end)

    def _noted(self, event: Mapping[str, Any]) -> Exit | None:
        if "start" in event:
            self._begin(_object(event["start"]))
        return self._exit(_object(event["end"])) if "end" in event else None

    def _abandon(self, end: Exit | None) -> None:
        if end is None:
            self._kill()

    def _checked(self, end: Exit | None) -> Exit:
        if end is None:
            raise Unknown
        if self._cut_short:
            raise Unknown("The command's input could not be delivered")
        return end

    def _begin(self, start: Mapping[str, Any]) -> None:
        pid = start.get("pid")
        if self._pid is not None or not isinstance(pid, int):
            raise ProtocolBroken
        self._pid = pid
        if self._command.stdin is not None:
            # By its own thread: a command may write much before it reads, and would block.
            threading.Thread(
                target=self._feed, args=(pid, self._command.stdin), daemon=True
            ).start()

    def _exit(self, end: Mapping[str, Any]) -> Exit:
        if self._pid is None:
            raise ProtocolBroken
        if end.get("exited") is True:
            code = end.get("exitCode", 0)  # JSON of protobuf leaves zeros out
            if isinstance(code, int):
                return Exit(code)
            raise ProtocolBroken
        if time.monotonic() >= self._over:
            return Exit(None, timed_out=True)  # envd ends commands at the call's own timeout
        status = re.sub(r"^signal: | \(core dumped\)$", "", str(end.get("status", "")))
        return Exit(None, signal=_SIGNALS.get(status))

    def _without_end(self, trailer: Mapping[str, Any]) -> Exit:
        """The stream ended properly, the command did not."""
        error = _object(trailer.get("error", {}))
        code, message = str(error.get("code", "")), str(error.get("message", ""))
        if code == "deadline_exceeded" and self._pid is not None:
            return self._timed_out()
        if self._pid is None:
            raise envd.trailer_failure(code, message)
        raise Unknown

    def _lost(self) -> Exit:
        if self._pid is not None and time.monotonic() >= self._over:
            return self._timed_out()
        raise Unknown

    def _timed_out(self) -> Exit:
        self._kill()
        return Exit(None, timed_out=True)

    def _kill(self) -> None:
        if self._pid is not None:
            self._tell("SendSignal", self._pid, {"signal": "SIGNAL_SIGKILL"}, KILL_SECONDS)

    def _feed(self, pid: int, data: bytes) -> None:
        parts = (data[at : at + STDIN_CHUNK] for at in range(0, len(data), STDIN_CHUNK))
        for part in parts:
            text = base64.b64encode(part).decode("ascii")
            if not self._tell("SendInput", pid, {"input": {"stdin": text}}, self._left()):
                return
        self._tell("CloseStdin", pid, {}, self._left())

    def _left(self) -> float:
        return max(1.0, self._over - time.monotonic())

    def _tell(self, procedure: str, pid: int, body: Mapping[str, Any], timeout: float) -> bool:
        """A call about the command; a command that is over does not hear it, and need not."""
        request = {"process": {"pid": pid}, **body}
        try:
            self._agents.unary(
                self._ref, f"process.Process/{procedure}", request, envd.CALLS, timeout
            )
        except Unknown:
            if procedure != "SendSignal":
                # Without all of its input it must not go on as if it had it.
                self._cut_short = True
                self._kill()
            return False
        except ProviderFailure:
            return False
        return True


def _start(agents: Agents, ref: Ref, command: Command) -> Call:
    shell = ("/bin/bash", "-l", "-c", command.shell or "")
    words = command.argv or shell
    process: dict[str, Any] = {
        "cmd": words[0],
        "args": list(words[1:]),
        "envs": {name: value.reveal() for name, value in command.env.items()},
    }
    if command.cwd is not None:
        process["cwd"] = command.cwd
    body = wire.document({"process": process, "stdin": command.stdin is not None})
    return Call(
        "POST",
        f"{agents.address(ref)}/process.Process/Start",
        envd.SANDBOX,
        command.timeout_seconds + GRACE,
        headers={
            **agents.headers(ref),
            "Content-Type": "application/connect+json",
            "Connect-Protocol-Version": "1",
            "Connect-Timeout-Ms": str(max(1, round(command.timeout_seconds * 1000))),
            # Seconds. Each is a moment in which whoever left a silent command can end it.
            "Keepalive-Ping-Interval": "5",
        },
        body=b"\x00" + len(body).to_bytes(4, "big") + body,
        verdicts=envd.CALLS,
    )


def _frames(incoming: Incoming) -> Iterator[tuple[bool, Mapping[str, Any]]]:
    """(is it the trailer, message) of each frame; raises Unknown when the stream is cut."""
    buffer = bytearray()
    for chunk in incoming.chunks():
        buffer += chunk
        while len(buffer) >= 5:
            flag, size = buffer[0], int.from_bytes(buffer[1:5], "big")
            if flag not in (0, 2) or size > FRAME_LIMIT:
                raise ProtocolBroken
            if len(buffer) < 5 + size:
                break
            message = parse(bytes(buffer[5 : 5 + size]), dict)
            del buffer[: 5 + size]
            yield flag == 2, message


def _object(value: Any) -> Mapping[str, Any]:
    if isinstance(value, dict):
        return value
    raise ProtocolBroken


def _outputs(event: Mapping[str, Any]) -> Iterator[Output]:
    """What it wrote; nothing, where envd says only that it still runs."""
    if "keepalive" in event:
        yield Output("stdout", b"")
    streams: tuple[Literal["stdout", "stderr"], ...] = ("stdout", "stderr")
    data = _object(event.get("data", {}))
    for stream in streams:
        if stream in data:
            yield Output(stream, _decoded(data[stream]))


def _decoded(text: Any) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (ValueError, TypeError):
        pass
    raise ProtocolBroken
