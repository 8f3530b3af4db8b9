"""envd's process service. Facts: process.proto; JSON as protobuf maps it (zero values left out)."""

from __future__ import annotations

import asyncio
import base64
import binascii
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from infra.local.host.cell import Cell
from infra.local.host.dialects.e2b import connect
from infra.local.host.dialects.e2b.connect import RpcError
from infra.local.host.engine import Engine
from infra.local.host.instance import Instance
from infra.local.host.process import (
    Command,
    CommandError,
    CommandSpec,
    Ended,
    Output,
    Subscription,
)

Serve = Callable[[Request, Instance, Cell], Awaitable[Response]]
_SIGNALS = {
    "SIGNAL_SIGTERM": signal.SIGTERM, "SIGNAL_SIGKILL": signal.SIGKILL, 15: signal.SIGTERM,
    9: signal.SIGKILL,
}  # fmt: skip
# envd's own default when the caller asks for no keepalive.
_KEEPALIVE_SECONDS = 90.0


class ProcessApi:
    """Commands in a sandbox over Connect."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def methods(self) -> dict[str, tuple[Serve, bool]]:
        """Return each method and whether it streams."""
        return {
            "Start": (self._start, True),
            "Connect": (self._connect, True),
            "StreamInput": (self._stream_input, True),
            "List": (self._list, False),
            "SendInput": (self._send_input, False),
            "CloseStdin": (self._close_stdin, False),
            "SendSignal": (self._send_signal, False),
        }

    async def _start(self, request: Request, instance: Instance, cell: Cell) -> Response:
        message = await connect.read_first(request)
        spec = _spec(message, connect.timeout_seconds(request))
        cwd = cell.files.absolute(spec.cwd or "~")
        if not cell.files.is_directory(cwd):
            raise RpcError("invalid_argument", f"cwd '{cwd}' does not exist")
        try:
            command, reader = await self._engine.run(instance, spec)
        except CommandError as error:
            raise RpcError("invalid_argument", f"error starting process: {error}") from error
        # No limit of the stream's own: the command's ends it, once everything is dead.
        return connect.stream_response(_events(command, reader, _keepalive(request), None))

    async def _connect(self, request: Request, instance: Instance, cell: Cell) -> Response:
        message = await connect.read_first(request)
        command = _select(instance, message)
        limit, reader = connect.timeout_seconds(request), command.subscribe()
        return connect.stream_response(_events(command, reader, _keepalive(request), limit))

    async def _stream_input(self, request: Request, instance: Instance, cell: Cell) -> Response:
        command: Command | None = None
        async for message in connect.read_frames(request):
            if "start" in message:
                command = _select(instance, message["start"])
            elif "data" in message:
                if command is None:
                    raise RpcError("invalid_argument", "the first message must be a start")
                await _write(command, message["data"])
        return Response(connect.frame({}) + connect.end_frame(), media_type=connect.STREAM_TYPE)

    async def _list(self, request: Request, instance: Instance, cell: Cell) -> Response:
        await connect.read_unary(request)
        running = [one for one in instance.commands.values() if one.ended is None]
        return JSONResponse({"processes": [_info(one) for one in running]} if running else {})

    async def _send_input(self, request: Request, instance: Instance, cell: Cell) -> Response:
        message = await connect.read_unary(request)
        await _write(_select(instance, message), message)
        return JSONResponse({})

    async def _close_stdin(self, request: Request, instance: Instance, cell: Cell) -> Response:
        command = _select(instance, await connect.read_unary(request))
        try:
            command.close_stdin()
        except CommandError as error:
            raise RpcError("failed_precondition", str(error)) from error
        return JSONResponse({})

    async def _send_signal(self, request: Request, instance: Instance, cell: Cell) -> Response:
        message = await connect.read_unary(request)
        command = _select(instance, message)
        number = _SIGNALS.get(message.get("signal", 0))
        if number is None:
            raise RpcError("unimplemented", "invalid signal")
        if number == signal.SIGKILL:
            command.kill()
        else:
            command.signal(number)
        return JSONResponse({})


def _spec(message: dict[str, Any], timeout: float | None) -> CommandSpec:
    process = message.get("process")
    if not isinstance(process, dict) or not isinstance(process.get("cmd"), str):
        raise RpcError("invalid_argument", "process.cmd is required")
    if message.get("pty") is not None:
        raise RpcError("unimplemented", "a pty is not supported by this host")
    args, env = process.get("args") or [], process.get("envs") or {}
    if not isinstance(args, list) or not isinstance(env, dict):
        raise RpcError("invalid_argument", "args must be a list and envs an object")
    argv = (process["cmd"], *args)
    if not all(isinstance(text, str) and "\0" not in text for text in (*argv, *env.values())):
        raise RpcError("invalid_argument", "args and envs must be strings without NUL")
    if any(not name or "=" in name or "\0" in name for name in env):
        raise RpcError("invalid_argument", "envs holds a name that no environment can hold")
    return CommandSpec(
        argv=argv,
        env=env,
        cwd=process.get("cwd"),
        stdin=bool(message.get("stdin", True)),
        timeout_seconds=timeout,
        tag=message.get("tag"),
    )


def _select(instance: Instance, message: dict[str, Any]) -> Command:
    selector = message.get("process") or {}
    for command in instance.commands.values():
        if command.ended is None and (
            command.pid == selector.get("pid", -1)
            or (command.spec.tag is not None and command.spec.tag == selector.get("tag"))
        ):
            return command
    wanted = selector.get("pid", selector.get("tag"))
    raise RpcError("not_found", f"process with pid {wanted} not found")


async def _write(command: Command, message: dict[str, Any]) -> None:
    given = message.get("input") or {}
    if "pty" in given:
        raise RpcError("failed_precondition", "the process was started without a pty")
    try:
        data = base64.b64decode(given.get("stdin", ""), validate=True)
    except (binascii.Error, TypeError) as error:
        raise RpcError("invalid_argument", "stdin must be base64") from error
    try:
        await command.write(data)
    except CommandError as error:
        raise RpcError("failed_precondition", str(error)) from error


def _info(command: Command) -> dict[str, Any]:
    config: dict[str, Any] = {"cmd": command.spec.argv[0]}
    if len(command.spec.argv) > 1:
        config["args"] = list(command.spec.argv[1:])
    if command.spec.env:
        config["envs"] = command.spec.env
    if command.spec.cwd is not None:
        config["cwd"] = command.spec.cwd
    info: dict[str, Any] = {"config": config, "pid": command.pid}
    return info if command.spec.tag is None else info | {"tag": command.spec.tag}


async def _events(
    command: Command, reader: Subscription, pause: float, limit: float | None
) -> AsyncIterator[bytes]:
    """Yield a command's events; the caller's leaving ends the stream, not the command."""
    loop = asyncio.get_running_loop()
    deadline = None if limit is None else loop.time() + limit
    yield connect.frame({"event": {"start": {"pid": command.pid}}})
    try:
        while True:
            left = pause if deadline is None else min(pause, deadline - loop.time())
            try:
                item = await asyncio.wait_for(reader.get(), max(left, 0.0))
            except TimeoutError:
                if deadline is not None and loop.time() >= deadline:
                    yield connect.end_frame(_deadline())
                    return
                yield connect.frame({"event": {"keepalive": {}}})
                continue
            if isinstance(item, Output):
                data = base64.b64encode(item.data).decode()
                yield connect.frame({"event": {"data": {item.stream: data}}})
            elif item.timed_out:
                yield connect.end_frame(_deadline())
                return
            else:
                yield connect.frame({"event": {"end": _end(item)}}) + connect.end_frame()
                return
    finally:
        command.unsubscribe(reader)


def _deadline() -> RpcError:
    return RpcError("deadline_exceeded", "context deadline exceeded")


def _keepalive(request: Request) -> float:
    text = request.headers.get("keepalive-ping-interval", "")
    return float(text) if text.isdigit() and int(text) > 0 else _KEEPALIVE_SECONDS


def _end(ended: Ended) -> dict[str, Any]:
    """Say how a process ended as Go's os.ProcessState does, which envd hands on."""
    if ended.code < 0:
        name = _GO_SIGNALS.get(-ended.code, f"signal {-ended.code}")
        return {"exitCode": -1, "status": f"signal: {name}", "error": f"signal: {name}"}
    status = f"exit status {ended.code}"
    if ended.code == 0:
        return {"exited": True, "status": status}
    return {"exitCode": ended.code, "exited": True, "status": status, "error": status}


_GO_SIGNALS = {
    1: "hangup", 2: "interrupt", 3: "quit", 6: "aborted", 9: "killed", 11: "segmentation fault",
    13: "broken pipe", 14: "alarm clock", 15: "terminated", 25: "file size limit exceeded",
}  # fmt: skip
