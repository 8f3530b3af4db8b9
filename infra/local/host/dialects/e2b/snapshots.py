"""E2B's snapshots: templates of an account's own, made of a running sandbox.

Facts: openapi.yml and packages/api/internal/handlers (snapshot_template_create.go,
snapshot_template_list.go, template_delete.go) of github.com/e2b-dev/infra at 54693ff, and the
field `memory` of the SDK 2.63.0. E2B's hold memory and disk. This engine cannot capture memory:
here both kinds hold the disk only, and what is made of one starts without its processes.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from infra.local.host.captures import Capture, CaptureError, CaptureState
from infra.local.host.config import Account
from infra.local.host.dialects.e2b import bodies, listing
from infra.local.host.dialects.e2b.errors import ApiError, sandbox_not_found
from infra.local.host.engine import Engine, StateError
from infra.local.host.instance import Gone, Instance, State, now_ms

_PART = re.compile(r"[a-z0-9_-]+")
_TAG = re.compile(r"[a-z0-9_.-]+")
_DEFAULT = "default"


class Snapshots:
    """The operations on snapshots. authorize, instance_of: whose a request is, and about what."""

    def __init__(
        self,
        engine: Engine,
        authorize: Callable[[Request], Account],
        instance_of: Callable[[Request], Instance],
    ) -> None:
        self._engine = engine
        self._authorize = authorize
        self._instance = instance_of

    def routes(self) -> list[Route]:
        """Return the routes; a template's name has a slash in it."""
        return [
            Route("/sandboxes/{id}/snapshots", self._take, methods=["POST"]),
            Route("/snapshots", self._list, methods=["GET"]),
            Route("/templates/{name:path}", self._delete, methods=["DELETE"]),
        ]

    def resolve(self, account: Account, name: str) -> Capture | None:
        """Return the account's snapshot of an id or a name, however qualified."""
        alias, tag = _parsed(name, account)
        if tag not in (None, _DEFAULT):
            return None
        ready = [one for one in self._of(account) if one.state is CaptureState.READY]
        return next((one for one in ready if alias in (one.id, one.name)), None)

    def _of(self, account: Account) -> list[Capture]:
        return self._engine.captures.of(account.name)

    async def _take(self, request: Request) -> Response:
        account, instance = self._authorize(request), self._instance(request)
        body = await bodies.json_body(request)
        bodies.boolean_of(body, "memory", True)
        name = _name_of(body, account)
        if instance.state is State.PAUSED:
            raise sandbox_not_found(instance.id)  # only what runs is looked for
        if instance.capturing or instance.state is not State.RUNNING:
            state = "snapshotting" if instance.capturing else instance.state.value
            text = f"Sandbox '{instance.id}' cannot be snapshotted while in '{state}' state"
            raise ApiError(409, text)
        existing = None if name is None else self.resolve(account, name)
        made = await self._made(request, instance, name)
        if existing is not None:
            # The template stays, and is of the newer build from now on.
            await asyncio.to_thread(self._engine.captures.replace, existing, made)
            made = existing
        return JSONResponse(_described(made, account), 201)

    async def _made(self, request: Request, instance: Instance, name: str | None) -> Capture:
        capture = self._engine.captures.begin(instance, name)
        seconds = request.scope.get("host.capture_seconds", 0.0)
        try:
            if request.scope.get("host.capture_fails"):
                await self._engine.destroy(instance, Gone.KILLED)  # E2B does, when one fails
            await self._engine.capture(instance, capture, seconds=seconds)
        except (StateError, CaptureError, OSError) as error:
            await asyncio.to_thread(self._engine.captures.remove, capture)
            raise ApiError(500, "Error creating snapshot template") from error
        return capture

    async def _list(self, request: Request) -> Response:
        account, params = self._authorize(request), request.query_params
        source, name = params.get("sandboxID"), params.get("name")
        after, limit = listing.after_of(params), listing.limit_of(params)
        lag = request.scope.get("host.list_lag", 0.0) * 1000
        named = None if name is None else self.resolve(account, name)
        found = [
            one
            for one in reversed(self._of(account))
            if one.state is CaptureState.READY
            and now_ms() - one.created_ms >= lag
            and source in (None, one.source)
            and (name is None or one is named)
            and (after is None or _position(one) < after)
        ]
        page = found[:limit]
        more = {"X-Next-Token": listing.token_of(_position(page[-1]))} if found[limit:] else {}
        return JSONResponse([_described(one, account) for one in page], headers=more)

    async def _delete(self, request: Request) -> Response:
        account, name = self._authorize(request), request.path_params["name"]
        capture = self.resolve(account, name)
        if capture is None:
            raise ApiError(404, f"template '{name}' not found")
        users = [
            one.state
            for one in self._engine.instances()
            if one.alive and one.request.capture == capture.id
        ]
        if users:
            kind = "paused" if set(users) == {State.PAUSED} else "running"
            text = f"cannot delete template '{capture.id}' because there are {kind} sandboxes"
            raise ApiError(400, f"{text} using it")
        await asyncio.to_thread(self._engine.captures.remove, capture)
        return Response(status_code=204)


def _name_of(body: dict[str, object], account: Account) -> str | None:
    name = body.get("name")
    if name is None:
        return None
    if not isinstance(name, str):
        raise ApiError(400, "name must be a string")
    alias, tag = _parsed(name, account)
    if tag not in (None, _DEFAULT):
        raise ApiError(400, "tags are not supported by this host")
    return alias


def _parsed(name: str, account: Account) -> tuple[str, str | None]:
    """Return the alias and the tag of `alias`, `team/alias`, each with or without `:tag`."""
    identifier, colon, tag = name.strip().lower().partition(":")
    team, slash, alias = identifier.rpartition("/")
    if not _PART.fullmatch(alias) or (colon and not _TAG.fullmatch(tag)):
        raise ApiError(400, f"Invalid name: {name}")
    if slash and team != _team(account):
        raise ApiError(400, f"namespace '{team}' must match your team '{_team(account)}'")
    return alias, tag if colon else None


def _team(account: Account) -> str:
    return re.sub(r"[^a-z0-9_-]", "-", account.name.lower())


def _position(capture: Capture) -> listing.Position:
    return capture.created_ms, capture.id


def _described(capture: Capture, account: Account) -> dict[str, object]:
    names = [] if capture.name is None else [f"{_team(account)}/{capture.name}"]
    return {"snapshotID": f"{(names or [capture.id])[0]}:{_DEFAULT}", "names": names}
