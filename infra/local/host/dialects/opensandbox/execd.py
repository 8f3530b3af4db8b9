"""OpenSandbox's execd, the agent inside a sandbox, behind the server's proxy path.

Facts: execd-api.yaml and components/execd at 3bb6fad; api/proxy.py of opensandbox-server 1.1.1.
Nothing but execd's port is proxied: instances here share the loopback of this machine, and a way
to their ports would be a way to everybody's.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Awaitable, Callable, Mapping

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from infra.local.host.cell import Cell
from infra.local.host.dialects.opensandbox import views
from infra.local.host.dialects.opensandbox.errors import ApiError, sandbox_not_found
from infra.local.host.dialects.opensandbox.execd_command import CommandApi
from infra.local.host.dialects.opensandbox.execd_files import FilesApi
from infra.local.host.engine import Engine, StateError
from infra.local.host.instance import Instance, State
from infra.local.host.measure import Meter

PORT = "44772"
_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]
Serve = Callable[[Request, Instance, Cell], Awaitable[Response]]


class Execd:
    """The routes into sandboxes."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._meter = Meter()
        self._served: Mapping[str, Serve] = {
            "GET /ping": _ping,
            "GET /metrics": self._metrics,
            **CommandApi(engine).methods(),
            **FilesApi().methods(),
        }

    def routes(self) -> list[Route]:
        """Return the routes of the proxy path."""
        path = "/sandboxes/{id}/proxy/{port:int}"
        return [
            Route(path + suffix, self._serve, methods=_METHODS) for suffix in ("", "/{rest:path}")
        ]

    async def _serve(self, request: Request) -> Response:
        instance = self._engine.find(request.path_params["id"])
        if instance is None or instance.request.dialect != "opensandbox":
            raise sandbox_not_found(request.path_params["id"])
        if not views.visible(instance):
            raise sandbox_not_found(instance.id)
        if str(request.path_params["port"]) != PORT:
            raise ApiError(502, "BACKEND_CONNECTION_FAILED", "Could not connect to the sandbox.")
        if not instance.is_in(State.RUNNING) or instance.cell is None:
            raise ApiError(504, "BACKEND_TIMEOUT", "The sandbox did not respond in time.")
        serve = self._find(request.method, "/" + request.path_params.get("rest", ""))
        try:
            return await serve(request, instance, instance.cell)
        except StateError as error:
            raise ApiError(
                504, "BACKEND_TIMEOUT", f"The sandbox did not respond: {error}"
            ) from error

    def _find(self, method: str, path: str) -> Serve:
        for pattern, serve in self._served.items():
            verb, _, wanted = pattern.partition(" ")
            # An id may stand where the pattern has a star.
            if verb == method and re.fullmatch(wanted.replace("*", "[^/]+"), path):
                return serve
        raise ApiError(404, "NOT_SUPPORTED", f"{method} {path} is not supported by this host.")

    async def _metrics(self, request: Request, instance: Instance, cell: Cell) -> Response:
        used = await self._meter.measure(instance)
        return JSONResponse(
            {
                "cpu_count": float(min(instance.template.vcpu, os.cpu_count() or 1)),
                "cpu_used_pct": round(used.cpu_percent, 2),
                "mem_total_mib": float(instance.template.memory_mib),
                "mem_used_mib": round(used.memory_bytes / 2**20, 2),
                "timestamp": round(time.time() * 1000),
            }
        )


async def _ping(request: Request, instance: Instance, cell: Cell) -> Response:
    return Response(status_code=200)
