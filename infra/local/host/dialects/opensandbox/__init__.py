"""The OpenSandbox dialect: a single-tenant server on Docker, and its execd behind the proxy path.

Paths are served bare and under /v1, as the server does. The proxy path wants no key there.
"""

from __future__ import annotations

import re
import uuid

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount
from starlette.types import Message, Receive, Scope, Send

from infra.local.host.calls import Call
from infra.local.host.config import Account
from infra.local.host.dialects.opensandbox import errors
from infra.local.host.dialects.opensandbox.execd import Execd
from infra.local.host.dialects.opensandbox.lifecycle import KEY_HEADER, Lifecycle
from infra.local.host.engine import Engine
from infra.local.host.faults import Fault

_PROXY = re.compile(r"(?:/v1)?/sandboxes/([^/]+)/proxy/\d+(/.*)?")
_ONE = re.compile(r"(?:/v1)?/sandboxes/([^/]+)(?:/([^/]+))?(?:/.*)?")
_ACTIONS = {
    "pause": "pause", "resume": "resume", "renew-expiration": "timeout", "snapshots": "snapshot",
}  # fmt: skip
_SNAPSHOT = re.compile(r"(?:/v1)?/snapshots(/[^/]+)?")


class OpenSandbox:
    """ASGI application that speaks OpenSandbox."""

    def __init__(self, engine: Engine, accounts: tuple[Account, ...]) -> None:
        self._engine = engine
        self._lifecycle = Lifecycle(engine, accounts)
        routes = [*Execd(engine).routes(), *self._lifecycle.routes()]
        self._app = Starlette(
            routes=[Mount("/v1", routes=routes), *routes],
            exception_handlers={errors.ApiError: _api_error},
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; every answer names it, as the server's do."""
        request_id = uuid.uuid4().hex.encode()

        async def named(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (b"x-request-id", request_id)]
            await send(message)

        await self._app(scope, receive, named)

    def classify(self, scope: Scope) -> Call:
        """Say whose call a request is and what it asks for."""
        request = Request(scope)
        path = request.url.path.removeprefix(scope.get("root_path", ""))
        account = self._lifecycle.account_of(request.headers.get(KEY_HEADER))
        name = None if account is None else account.name
        call = Call(account=name, op="other", method=request.method, path=path)
        if found := _PROXY.fullmatch(path):
            call.instance_id = found[1]
            call.op = _agent_op(found[2] or "/")
            instance = self._engine.find(found[1])
            call.account = None if instance is None else instance.request.account
        elif path.removeprefix("/v1") == "/sandboxes":
            call.op = "create" if request.method == "POST" else "list"
        elif found := _SNAPSHOT.fullmatch(path):
            one = "snapshot_destroy" if request.method == "DELETE" else "snapshot_get"
            call.op = one if found[1] else "snapshot_list"
        elif found := _ONE.fullmatch(path):
            call.instance_id = found[1]
            call.op = _ACTIONS.get(found[2] or "", "other")
            if found[2] is None:
                call.op = "delete" if request.method == "DELETE" else "get"
        return call

    def refusal(self, fault: Fault, call: Call) -> Response:
        """Say a fault in OpenSandbox's words."""
        return errors.refusal(fault, call)


def _agent_op(path: str) -> str:
    if path.startswith("/command"):
        return "exec"
    return "files" if path.startswith(("/files", "/directories")) else "other"


def _api_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, errors.ApiError)
    return error.response()
