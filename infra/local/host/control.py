"""The host's own control plane on loopback: what it is, what runs, what was called, faults."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from infra.local.host.calls import CallLog
from infra.local.host.captures import Capture
from infra.local.host.config import Config
from infra.local.host.engine import Engine, StateError
from infra.local.host.faults import BadFault, Faults
from infra.local.host.instance import Gone, Instance, State
from infra.local.host.moments import rfc3339

_STATES = {state.value for state in State}
_LOCAL_NAMES = ("127.0.0.1", "localhost")
Handler = Callable[[Request], Awaitable[Response]]


class BadRequest(Exception):
    """A request that the control plane cannot carry out, with its status."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


class HostControl:
    """The routes under /_host."""

    def __init__(
        self, engine: Engine, config: Config, faults: Faults, log: CallLog, facts: dict[str, Any]
    ) -> None:
        self._engine = engine
        self._accounts = frozenset(account.name for account in config.accounts)
        self._faults = faults
        self._log = log
        self._facts = facts

    def routes(self) -> list[Route]:
        """Return the routes of the control plane."""
        handlers: list[tuple[str, str, Handler]] = [
            ("GET", "", self._about),
            ("GET", "/instances", self._instances),
            ("POST", "/instances/{id}/kill", self._kill),
            ("POST", "/instances/{id}/pause", self._pause),
            ("GET", "/captures", self._captures),
            ("GET", "/calls", self._calls),
            ("GET", "/faults", self._list_faults),
            ("POST", "/faults", self._order_fault),
            ("DELETE", "/faults", self._cancel_faults),
            ("DELETE", "/faults/{id}", self._cancel_faults),
        ]
        return [
            Route("/_host" + path, _local(run), methods=[method]) for method, path, run in handlers
        ]

    async def _about(self, request: Request) -> Response:
        tier, late = self._engine.tier, self._engine.late_ms
        living = sum(one.alive for one in self._engine.instances())
        return JSONResponse(
            self._facts
            | {
                "walls": list(tier.walls),
                "cuts_network": tier.cuts_network,
                "note": tier.note,
                "instances": living,
                "lifetime_late_ms_max": max(late, default=None),
            }
        )

    async def _instances(self, request: Request) -> Response:
        params = _params(request, "account", "state")
        account, state = self._account(params), params.get("state")
        if state is not None and state not in _STATES:
            raise BadRequest(f"state must be one of: {', '.join(sorted(_STATES))}")
        found = [
            one
            for one in self._engine.instances()
            if account in (None, one.request.account) and state in (None, one.state.value)
        ]
        return JSONResponse({"instances": [_instance(one) for one in found]})

    async def _captures(self, request: Request) -> Response:
        account = self._account(_params(request, "account"))
        found = [one for one in self._engine.captures.all() if account in (None, one.account)]
        return JSONResponse({"captures": [_capture(one) for one in found]})

    def _account(self, params: dict[str, str]) -> str | None:
        account = params.get("account")
        if account is not None and account not in self._accounts:
            raise BadRequest(f"account {account!r} is not configured here")
        return account

    async def _kill(self, request: Request) -> Response:
        await self._engine.destroy(self._living(request), Gone.KILLED)
        return Response(status_code=204)

    async def _pause(self, request: Request) -> Response:
        try:
            await self._engine.pause(self._living(request))
        except StateError as error:
            raise BadRequest(str(error), 409) from error
        return Response(status_code=204)

    def _living(self, request: Request) -> Instance:
        instance = self._engine.find(request.path_params["id"])
        if instance is None or not instance.alive:
            raise BadRequest(f"no living instance {request.path_params['id']!r}", 404)
        return instance

    async def _calls(self, request: Request) -> Response:
        params = _params(request, "account", "op", "after")
        after = params.get("after", "0")
        if not after.isdigit():
            raise BadRequest("after must be a whole number, a `seq`")
        found = self._log.read(account=params.get("account"), op=params.get("op"), after=int(after))
        return JSONResponse({"calls": [call.to_json() for call in found]})

    async def _list_faults(self, request: Request) -> Response:
        return JSONResponse({"faults": [fault.to_json() for fault in self._faults.all()]})

    async def _order_fault(self, request: Request) -> Response:
        try:
            body = json.loads(await request.body())
        except ValueError as error:
            raise BadRequest(f"the body is not JSON: {error}") from error
        try:
            fault = self._faults.order(body, self._accounts)
        except BadFault as error:
            raise BadRequest(str(error)) from error
        return JSONResponse(fault.to_json(), 201)

    async def _cancel_faults(self, request: Request) -> Response:
        if not self._faults.cancel(request.path_params.get("id")):
            raise BadRequest("there is no such fault", 404)
        return Response(status_code=204)


def _local(run: Handler) -> Handler:
    """Answer only to loopback names: a web page must not reach this by a name of its own."""

    async def handle(request: Request) -> Response:
        if (request.url.hostname or "") not in _LOCAL_NAMES:
            return _error("the Host header must name this machine's loopback", 403)
        try:
            return await run(request)
        except BadRequest as error:
            return _error(str(error), error.status)

    return handle


def _params(request: Request, *known: str) -> dict[str, str]:
    unknown = sorted(set(request.query_params) - set(known))
    if unknown:
        raise BadRequest(f"unknown parameter {unknown[0]!r}; known: {', '.join(known)}")
    return dict(request.query_params)


def _instance(instance: Instance) -> dict[str, Any]:
    return {
        "id": instance.id,
        "account": instance.request.account,
        "dialect": instance.request.dialect,
        "template": instance.request.template,
        "state": instance.state.value,
        "metadata": instance.request.metadata,
        **_moment("created_at", instance.created_ms),
        **_moment("ends_at", instance.ends_ms),
        **_moment("gone_at", instance.gone_ms),
        "gone_reason": None if instance.gone is None else instance.gone.value,
        "processes": instance.process_count(),
    }


def _capture(capture: Capture) -> dict[str, Any]:
    shown = ("id", "account", "dialect", "name", "source", "bytes")
    return {name: getattr(capture, name) for name in shown} | {
        "state": capture.state.value,
        **_moment("created_at", capture.created_ms),
        **_moment("ready_at", capture.ready_ms),
    }


def _moment(name: str, epoch_ms: int | None) -> dict[str, Any]:
    text = None if epoch_ms is None else rfc3339(epoch_ms)
    return {name: text, f"{name.removesuffix('_at')}_ms": epoch_ms}


def _error(message: str, status: int) -> Response:
    return JSONResponse({"error": message}, status)
