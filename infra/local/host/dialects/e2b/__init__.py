"""The E2B dialect: its control plane, and its envd under /sandbox, routed by a header."""

from __future__ import annotations

import re
import secrets

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount
from starlette.types import Receive, Scope, Send

from infra.local.host.calls import Call
from infra.local.host.config import Account
from infra.local.host.dialects.e2b import errors
from infra.local.host.dialects.e2b.connect import RpcError
from infra.local.host.dialects.e2b.control import ControlPlane
from infra.local.host.dialects.e2b.envd import Envd, instance_id_of
from infra.local.host.dialects.e2b.views import Tokens
from infra.local.host.engine import Engine
from infra.local.host.faults import Fault

_ONE = re.compile(r"(?:/v2)?/sandboxes/([^/]+)(?:/([^/]+))?")
_ACTIONS = {
    "pause": "pause", "connect": "resume", "resume": "resume", "timeout": "timeout",
    "refreshes": "timeout", "snapshots": "snapshot",
}  # fmt: skip


class E2B:
    """ASGI application that speaks E2B."""

    def __init__(self, engine: Engine, accounts: tuple[Account, ...]) -> None:
        tokens = Tokens(secrets.token_bytes(32))
        self._engine = engine
        self._control = ControlPlane(engine, accounts, tokens)
        envd = Envd(engine, tokens)
        self._app = Starlette(
            routes=[Mount("/sandbox", routes=envd.routes()), *self._control.routes()],
            exception_handlers={errors.ApiError: _api_error, RpcError: _rpc_error},
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        await self._app(scope, receive, send)

    def classify(self, scope: Scope) -> Call:
        """Say whose call a request is and what it asks for."""
        request = Request(scope)
        path = request.url.path.removeprefix(scope.get("root_path", ""))
        if path == "/sandbox" or path.startswith("/sandbox/"):
            return self._classify_envd(request, path.removeprefix("/sandbox"))
        account = self._control.account_of(request.headers.get("x-api-key"))
        call = Call(
            account=None if account is None else account.name,
            op="other",
            method=request.method,
            path=path,
            identity=request.headers.get("idempotency-key"),
        )
        found = _ONE.fullmatch(path)
        if path in ("/v2/sandboxes", "/sandboxes"):
            call.op = "create" if request.method == "POST" else "list"
        elif path == "/snapshots":
            call.op = "snapshot_get" if "name" in request.query_params else "snapshot_list"
        elif path.startswith("/templates/") and request.method == "DELETE":
            call.op = "snapshot_destroy"
        elif found and found[1] != "metrics":
            call.instance_id = found[1]
            if found[2] is None:
                call.op = "delete" if request.method == "DELETE" else "get"
            else:
                call.op = _ACTIONS.get(found[2], "other")
        return call

    def _classify_envd(self, request: Request, path: str) -> Call:
        instance_id = instance_id_of(request)
        instance = self._engine.find(instance_id)
        op = "other"
        if path.startswith("/process."):
            op = "exec"
        elif path.startswith(("/files", "/filesystem.")):
            op = "files"
        return Call(
            account=None if instance is None else instance.request.account,
            op=op,
            method=request.method,
            path=path,
            instance_id=instance_id or None,
        )

    def refusal(self, fault: Fault, call: Call) -> Response:
        """Say a fault in E2B's words."""
        return errors.refusal(fault, call)


def _api_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, errors.ApiError)
    return error.response()


def _rpc_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RpcError)
    return error.response()
