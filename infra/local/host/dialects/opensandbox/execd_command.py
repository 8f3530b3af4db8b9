"""execd's commands. Facts: components/execd/pkg/runtime and pkg/web/controller at 3bb6fad.

In the foreground output is told line by line as text: without its line ends, with U+FFFD for what
is no UTF-8. In the background both streams go to one file, which `/logs` gives as it is.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO
from uuid import uuid4

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from infra.local.host.cell import Cell
from infra.local.host.dialects.opensandbox.errors import ApiError
from infra.local.host.dialects.opensandbox.execd_paths import expand
from infra.local.host.dialects.opensandbox.lines import Lines
from infra.local.host.engine import Engine
from infra.local.host.instance import Instance
from infra.local.host.moments import rfc3339
from infra.local.host.process import Command, CommandError, CommandSpec, Ended, Subscription

Serve = Callable[[Request, Instance, Cell], Awaitable[Response]]
_PING_SECONDS = 3.0
_TERM_SECONDS = 3.0
_SHELL = "/bin/bash" if Path("/bin/bash").exists() else "/bin/sh"
_TOGETHER = ("/bin/sh", "-c", 'exec "$@" 2>&1', "sh")
_GO_SIGNALS = {
    1: "hangup", 2: "interrupt", 3: "quit", 6: "aborted", 9: "killed", 11: "segmentation fault",
    13: "broken pipe", 14: "alarm clock", 15: "terminated", 25: "file size limit exceeded",
}  # fmt: skip


@dataclass(slots=True)
class Run:
    """A command that execd knows: what it is, where its output went, how it ended."""

    content: str
    background: bool
    output: Path
    id: str = field(default_factory=lambda: uuid4().hex)
    started_ms: int = field(default_factory=lambda: round(time.time() * 1000))
    command: Command | None = None
    finished_ms: int | None = None
    exit_code: int | None = None
    error: str = ""

    def finish(self, ended: Ended) -> None:
        """Note how it ended, as Go's os/exec says it."""
        self.finished_ms = round(time.time() * 1000)
        self.exit_code = max(ended.code, -1)
        if ended.code < 0:
            self.error = f"signal: {_GO_SIGNALS.get(-ended.code, f'signal {-ended.code}')}"
        elif ended.code:
            self.error = f"exit status {ended.code}"

    def status(self) -> dict[str, Any]:
        """Return it as execd shows it; what is empty is left out."""
        shown: dict[str, Any] = {
            "id": self.id,
            "content": self.content,
            "running": self.finished_ms is None,
            "started_at": rfc3339(self.started_ms),
        }
        if self.finished_ms is not None:
            shown |= {"exit_code": self.exit_code, "finished_at": rfc3339(self.finished_ms)}
        return shown | ({"error": self.error} if self.error else {})


class CommandApi:
    """Commands in a sandbox."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._tasks: set[asyncio.Task[None]] = set()

    def methods(self) -> dict[str, Serve]:
        """Return each operation by its method and path."""
        return {
            "POST /command": self._run,
            "DELETE /command": self._interrupt,
            "GET /command/status/*": self._status,
            "GET /command/*/logs": self._logs,
        }

    async def _run(self, request: Request, instance: Instance, cell: Cell) -> Response:
        body = await _body(request)
        spec, content = _spec(body, instance, cell)
        background = bool(body.get("background"))
        run = Run(content, background, instance.place.directory / f"{uuid4().hex}.output")
        try:
            run.command, reader = await self._engine.run(instance, spec)
        except CommandError as error:
            raise ApiError(500, "RUNTIME_ERROR", f"error running commands {error}") from error
        _runs(instance)[run.id] = run
        if background:
            self._spawn(_keep(run, run.command, reader, instance.template.disk_mib * 2**20))
            events = _detached(run)
        else:
            self._spawn(_wait(run, run.command))
            events = _attached(run, run.command, reader)
        headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
        return StreamingResponse(events, 200, headers, "text/event-stream")

    async def _interrupt(self, request: Request, instance: Instance, cell: Cell) -> Response:
        run = _runs(instance).get(request.query_params.get("id", ""))
        if run is None or run.command is None or run.command.ended is not None:
            raise ApiError(500, "RUNTIME_ERROR", "error interrupting: no such session")
        run.command.signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(_TERM_SECONDS):
                await run.command.done.wait()
        except TimeoutError:
            run.command.kill()
        return Response(status_code=200)

    async def _status(self, request: Request, instance: Instance, cell: Cell) -> Response:
        run = _runs(instance).get(request.path_params["rest"].rpartition("/")[2])
        if run is None:
            raise ApiError(404, "INVALID_REQUEST_BODY", "command not found")
        return JSONResponse(run.status())

    async def _logs(self, request: Request, instance: Instance, cell: Cell) -> Response:
        run = _runs(instance).get(request.path_params["rest"].split("/")[1])
        if run is None or not run.background:
            raise ApiError(400, "INVALID_REQUEST_BODY", "command not found")
        text = request.query_params.get("cursor", "0")
        start = int(text) if text.isdecimal() else 0
        data = await asyncio.to_thread(_read, run.output, start)
        headers = {"EXECD-COMMANDS-TAIL-CURSOR": str(start + len(data))}
        return Response(data, 200, headers, "text/plain; charset=utf-8")

    def _spawn(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _runs(instance: Instance) -> dict[str, Run]:
    found = instance.request.extra["commands"]
    assert isinstance(found, dict)
    return found


async def _body(request: Request) -> dict[str, Any]:
    try:
        body = json.loads(await request.body())
    except ValueError as error:
        raise _bad(f"error parsing request, MAYBE invalid body format. {error}") from error
    if not isinstance(body, dict):
        raise _bad("error parsing request, MAYBE invalid body format")
    return body


def _bad(message: str) -> ApiError:
    return ApiError(400, "INVALID_REQUEST_BODY", message)


def _spec(body: dict[str, Any], instance: Instance, cell: Cell) -> tuple[CommandSpec, str]:
    command, argv, envs = body.get("command"), body.get("argv"), body.get("envs") or {}
    timeout = body.get("timeout") or 0
    if (command is None) == (argv is None) or not (command or argv):
        raise _bad("invalid request, exactly one of command and argv is required")
    words = [_SHELL, "-c", command] if argv is None else argv
    if not isinstance(words, list) or not isinstance(envs, dict) or not isinstance(timeout, int):
        raise _bad("invalid request, validation error")
    if not all(isinstance(t, str) and "\0" not in t for t in (*words, *envs, *envs.values())):
        raise _bad("invalid request, strings without NUL are expected")
    if any(not name or "=" in name for name in envs) or timeout < 0:
        raise _bad("invalid request, validation error")
    if body.get("uid") is not None or body.get("gid") is not None:
        raise _bad("this host has one user: uid and gid are not supported")
    cwd = expand(str(body["cwd"]), {**instance.request.env, **envs}) if body.get("cwd") else None
    if cwd is not None and not cell.files.is_directory(cwd):
        raise _bad(f"invalid request, validation error working directory {cwd} does not exist")
    together = _TOGETHER if body.get("background") else ()
    spec = CommandSpec((*together, *words), envs, cwd, timeout_seconds=timeout / 1000 or None)
    return spec, words[-1] if argv is None else " ".join(words)


async def _keep(run: Run, command: Command, reader: Subscription, room: int) -> None:
    """Write a background command's output to its file until it ends."""
    with run.output.open("wb", buffering=0) as file:
        while not isinstance(item := await reader.get(), Ended):
            room -= len(item.data)
            if room < 0:
                command.kill()  # the disk of its sandbox would be full
            else:
                await asyncio.to_thread(_write_all, file, item.data)
    run.finish(item)


def _write_all(file: BinaryIO, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file.fileno(), view) :]


def _read(path: Path, start: int) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(start)
            return file.read()
    except FileNotFoundError:
        return b""  # it has just begun


async def _wait(run: Run, command: Command) -> None:
    await command.done.wait()
    assert command.ended is not None
    run.finish(command.ended)


async def _detached(run: Run) -> AsyncIterator[bytes]:
    yield _event("init", text=run.id)
    yield _event("execution_complete", execution_time=1)


async def _attached(run: Run, command: Command, reader: Subscription) -> AsyncIterator[bytes]:
    """Yield a foreground command's events; the caller's leaving does not end the command."""
    lines = {"stdout": Lines(), "stderr": Lines()}
    yield _event("init", text=run.id)
    try:
        while True:
            try:
                item = await asyncio.wait_for(reader.get(), _PING_SECONDS)
            except TimeoutError:
                yield _event("ping", text="pong")
                continue
            if isinstance(item, Ended):
                break
            for text in lines[item.stream].feed(item.data):
                yield _event(item.stream, text=text)
    finally:
        command.unsubscribe(reader)
    for stream, rest in lines.items():
        for text in rest.flush():
            yield _event(stream, text=text)
    run.finish(item)
    if item.code:
        error = {"ename": "CommandExecError", "evalue": str(run.exit_code)}
        yield _event("error", error={**error, "traceback": [run.error]})
    else:
        taken = (run.finished_ms or 0) - run.started_ms
        yield _event("execution_complete", execution_time=max(taken, 1))


def _event(kind: str, **fields: Any) -> bytes:
    """One event as execd frames it: bare JSON and an empty line, without SSE's field name."""
    message = {"type": kind, **fields, "timestamp": round(time.time() * 1000)}
    return json.dumps(message).encode() + b"\n\n"
