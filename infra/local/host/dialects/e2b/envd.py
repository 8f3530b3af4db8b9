"""E2B's envd, the agent inside a sandbox, and the edge before it: who may call which sandbox.

Facts: envd.yaml, process.proto, filesystem.proto, and what the SDK 2.63.0 makes of the answers.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from infra.local.host.cell import Cell
from infra.local.host.dialects.e2b import connect, errors
from infra.local.host.dialects.e2b.connect import RpcError
from infra.local.host.dialects.e2b.envd_files import FilesApi
from infra.local.host.dialects.e2b.envd_process import ProcessApi
from infra.local.host.dialects.e2b.views import Tokens
from infra.local.host.engine import Engine, StateError
from infra.local.host.instance import Instance, State

ENVD_PORT = "49983"
_HOST = re.compile(r"(\d+)-([a-z0-9]+)\.")
Serve = Callable[[Request, Instance, Cell], Awaitable[Response]]


class Envd:
    """The routes into sandboxes."""

    def __init__(self, engine: Engine, tokens: Tokens) -> None:
        self._engine = engine
        self._tokens = tokens
        self._process = ProcessApi(engine)
        self._files = FilesApi()

    def routes(self) -> list[Route]:
        """Return the routes of envd."""
        routes = [
            Route("/health", self._guard(_health, open_to_all=True), methods=["GET"]),
            Route("/envs", self._guard(_envs), methods=["GET"]),
            Route("/files", self._guard(self._files.download), methods=["GET"]),
            Route("/files", self._guard(self._files.upload), methods=["POST"]),
        ]
        for service, methods in (
            ("process.Process", self._process.methods()),
            ("filesystem.Filesystem", self._files.methods()),
        ):
            for name, (serve, streams) in methods.items():
                handler = self._guard(_rpc(serve, streams=streams), rpc=True)
                routes.append(Route(f"/{service}/{name}", handler, methods=["POST"]))
        missing = self._guard(_rpc(_unimplemented, streams=False), rpc=True)
        return [*routes, Route("/{other:path}", missing, methods=["GET", "POST"])]

    def _guard(
        self, serve: Serve, *, open_to_all: bool = False, rpc: bool = False
    ) -> Callable[[Request], Awaitable[Response]]:
        """Return a handler that finds the sandbox and checks the caller's token first."""

        async def handle(request: Request) -> Response:
            instance_id = instance_id_of(request)
            if _port_of(request) != ENVD_PORT:
                message = "The sandbox is running but port is not open"
                return errors.edge_error(instance_id, message)
            instance = await self._reachable(instance_id)
            if instance is None or instance.cell is None:
                return errors.edge_error(instance_id, "The sandbox was not found")
            if not open_to_all:
                problem = self._denied(request, instance)
                if problem:
                    refused = RpcError("unauthenticated", problem)
                    return refused.response() if rpc else _unauthorized(problem)
            return await serve(request, instance, instance.cell)

        return handle

    async def _reachable(self, instance_id: str) -> Instance | None:
        """Return a running sandbox; one paused with autoResume is resumed by the traffic."""
        instance = self._engine.find(instance_id)
        if instance is None or instance.request.dialect != "e2b":
            return None
        if instance.state is State.PAUSED and instance.request.extra["auto_resume"]:
            timeout = instance.request.extra["timeout"]
            assert isinstance(timeout, int)
            # Who is late finds it resumed, or gone: the next line tells.
            with suppress(StateError):
                await self._engine.resume(instance, timeout)
        return instance if instance.is_in(State.RUNNING) else None

    def _denied(self, request: Request, instance: Instance) -> str:
        token = self._tokens.envd(instance)
        given = request.headers.get("x-access-token", "")
        if token is not None and not hmac.compare_digest(token.encode(), given.encode()):
            return "unauthorized access, please provide a valid access token or method signing"
        user = _user_of(request)
        if user not in ("", "user"):
            # There is one user here: a command asked for as root would not run as root.
            return f"error looking up user '{user}': user: unknown user {user}"
        return ""


def instance_id_of(request: Request) -> str:
    """Return the sandbox that a request is for, by header or by host name."""
    found = request.headers.get("e2b-sandbox-id")
    if found is None:
        host = _HOST.match(request.headers.get("host", ""))
        found = host[2] if host else ""
    return found


def _port_of(request: Request) -> str:
    host = _HOST.match(request.headers.get("host", ""))
    return request.headers.get("e2b-sandbox-port", host[1] if host else ENVD_PORT)


def _user_of(request: Request) -> str:
    if "username" in request.query_params:
        return request.query_params["username"]
    kind, _, value = request.headers.get("authorization", "").partition(" ")
    if kind.lower() != "basic":
        return ""
    try:
        return base64.b64decode(value, validate=True).decode().partition(":")[0]
    except (binascii.Error, UnicodeDecodeError):
        return "(invalid)"


def _unauthorized(message: str) -> Response:
    return JSONResponse({"code": 401, "message": message}, 401)


def _rpc(serve: Serve, *, streams: bool) -> Serve:
    """Return a handler whose errors are told as the call's kind wants them."""

    async def handle(request: Request, instance: Instance, cell: Cell) -> Response:
        try:
            return await serve(request, instance, cell)
        except RpcError as error:
            return connect.stream_error(error) if streams else error.response()
        except StateError as error:
            unavailable = RpcError("unavailable", f"{error}: the sandbox was not found")
            return connect.stream_error(unavailable) if streams else unavailable.response()

    return handle


async def _health(request: Request, instance: Instance, cell: Cell) -> Response:
    return Response(status_code=204)


async def _envs(request: Request, instance: Instance, cell: Cell) -> Response:
    return JSONResponse(instance.request.env)


async def _unimplemented(request: Request, instance: Instance, cell: Cell) -> Response:
    raise RpcError("unimplemented", f"{request.url.path} is not supported by this host")
