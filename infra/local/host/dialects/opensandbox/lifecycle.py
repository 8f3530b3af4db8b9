"""OpenSandbox's lifecycle API. Facts: sandbox-lifecycle.yml and opensandbox-server 1.1.1."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from infra.local.host.cell import CellError
from infra.local.host.config import Account
from infra.local.host.dialects.opensandbox import bodies, listing, views
from infra.local.host.dialects.opensandbox.errors import (
    ApiError,
    Unprocessable,
    sandbox_not_found,
)
from infra.local.host.dialects.opensandbox.snapshots import Snapshots
from infra.local.host.engine import Engine, StateError
from infra.local.host.instance import Gone, Instance

Handler = Callable[[Request], Awaitable[Response]]
KEY_HEADER = "open-sandbox-api-key"
_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]


class Lifecycle:
    """The operations on sandboxes from outside."""

    def __init__(self, engine: Engine, accounts: tuple[Account, ...]) -> None:
        self._engine = engine
        self._accounts = accounts
        self._snapshots = Snapshots(engine, self._authorize, self._instance)

    def routes(self) -> list[Route]:
        """Return the routes, fixed paths before those with an id."""
        one = "/sandboxes/{id}"
        return [
            Route("/health", _health, methods=["GET"]),
            Route("/version", _version, methods=["GET"]),
            Route("/metrics/events", self._event, methods=["POST"]),
            Route("/sandboxes", self._create, methods=["POST"]),
            Route("/sandboxes", self._list, methods=["GET"]),
            Route(one, self._get, methods=["GET"]),
            Route(one, self._delete, methods=["DELETE"]),
            Route(one + "/pause", self._pause, methods=["POST"]),
            Route(one + "/resume", self._resume, methods=["POST"]),
            Route(one + "/renew-expiration", self._renew, methods=["POST"]),
            Route(one + "/metadata", self._patch, methods=["PATCH"]),
            Route(one + "/endpoints/{port}", self._endpoint, methods=["GET"]),
            *self._snapshots.routes(),
            Route("/{other:path}", self._unsupported, methods=_METHODS),
        ]

    def account_of(self, key: str | None) -> Account | None:
        """Return the account that a key opens."""
        found = None
        for account in self._accounts:
            # Every key is compared: the time tells nothing of which one nearly matched.
            if key is not None and hmac.compare_digest(account.key.encode(), key.encode()):
                found = account
        return found

    def _authorize(self, request: Request) -> Account:
        key = request.headers.get(KEY_HEADER)
        if not key:
            raise ApiError(401, "MISSING_API_KEY", "Authentication credentials are missing.")
        account = self.account_of(key)
        if account is None:
            raise ApiError(401, "INVALID_API_KEY", "Authentication credentials are invalid.")
        return account

    def _instance(self, request: Request) -> Instance:
        account = self._authorize(request)
        instance_id = request.path_params["id"]
        instance = self._engine.find(instance_id, account.name)
        if instance is None or not views.visible(instance):
            raise sandbox_not_found(instance_id)
        return instance

    async def _create(self, request: Request) -> Response:
        account = self._authorize(request)
        disk = max(one.disk_mib for one in self._engine.templates.values())
        wanted = bodies.new_sandbox(await bodies.json_body(request), account.name, disk)
        if wanted.capture is not None:
            self._snapshots.restorable(account, wanted.capture)
        elif not bodies.pulled(wanted.template):
            text = f"Failed to pull image {wanted.template}: no such image."
            raise ApiError(500, "DOCKER::SANDBOX_IMAGE_PULL_FAILED", text)
        self._check_quota(account)
        try:
            instance = await self._engine.create(wanted)
        except (CellError, StateError) as error:
            text = f"Failed to start the sandbox container: {error}"
            raise ApiError(500, "DOCKER::SANDBOX_START_FAILED", text) from error
        request.scope["host.call"].instance_id = instance.id
        return JSONResponse(views.created(instance), 202)

    def _check_quota(self, account: Account) -> None:
        if account.max_instances is None:
            return
        there = sum(views.visible(one) for one in self._of(account))
        if there >= account.max_instances:
            text = f"Namespace ResourceQuota exceeded: {there} sandboxes are there."
            raise ApiError(403, "KUBERNETES::QUOTA_EXCEEDED", text)

    def _of(self, account: Account) -> list[Instance]:
        return [one for one in self._engine.instances() if one.request.account == account.name]

    async def _list(self, request: Request) -> Response:
        account = self._authorize(request)
        lag = request.scope.get("host.list_lag", 0.0)
        return JSONResponse(listing.answer(self._of(account), request.query_params, lag))

    async def _get(self, request: Request) -> Response:
        return JSONResponse(views.sandbox(self._instance(request)))

    async def _delete(self, request: Request) -> Response:
        await self._engine.destroy(self._instance(request), Gone.DELETED)
        return Response(status_code=204)

    async def _pause(self, request: Request) -> Response:
        try:
            await self._engine.pause(self._instance(request))
        except StateError as error:
            text = "Sandbox is not in a running state."
            raise ApiError(409, "DOCKER::SANDBOX_NOT_RUNNING", text) from error
        return Response(status_code=202)

    async def _resume(self, request: Request) -> Response:
        instance = self._instance(request)
        left = instance.seconds_left()
        try:
            await self._engine.resume(instance, None if left == float("inf") else left)
        except StateError as error:
            text = "Sandbox is not in a paused state."
            raise ApiError(409, "DOCKER::SANDBOX_NOT_PAUSED", text) from error
        return Response(status_code=202)

    async def _renew(self, request: Request) -> Response:
        instance = self._instance(request)
        end = bodies.future(await bodies.json_body(request))
        if instance.ends_at is None:
            text = f"Sandbox {instance.id} does not have automatic expiration enabled."
            raise ApiError(409, "DOCKER::INVALID_EXPIRATION", text)
        self._engine.set_lifetime(instance, (end - datetime.now(UTC)).total_seconds())
        return JSONResponse({"expiresAt": end.isoformat()})

    async def _patch(self, request: Request) -> Response:
        instance = self._instance(request)
        patch = await bodies.json_body(request)
        if not all(value is None or isinstance(value, str) for value in patch.values()):
            raise Unprocessable("Metadata values must be strings or null.")
        bodies.check_labels({name: value or "" for name, value in patch.items()})
        merged = {**instance.request.metadata, **patch}
        instance.request.metadata.clear()
        instance.request.metadata.update(
            {name: value for name, value in merged.items() if value is not None}
        )
        return JSONResponse(views.sandbox(instance))

    async def _endpoint(self, request: Request) -> Response:
        instance = self._instance(request)
        if "expires" in request.query_params:
            text = "Signed routes (expires parameter) are not supported by the Docker runtime."
            raise ApiError(400, "SANDBOX::API_NOT_SUPPORTED", text)
        port = request.path_params["port"]
        if not port.isdecimal() or not 1 <= int(port[:6]) <= 65535:
            raise ApiError(400, "DOCKER::INVALID_PORT", "Port must be between 1 and 65535.")
        # With or without `use_server_proxy`: instances here have no address of their own.
        base = request.url.netloc + request.url.path.partition("/sandboxes/")[0]
        return JSONResponse({"endpoint": f"{base}/sandboxes/{instance.id}/proxy/{port}"})

    async def _event(self, request: Request) -> Response:
        self._authorize(request)
        return Response(status_code=204)

    async def _unsupported(self, request: Request) -> Response:
        self._authorize(request)
        text = f"{request.method} {request.url.path} is not supported by this host."
        raise ApiError(501, "SANDBOX::API_NOT_SUPPORTED", text)


async def _health(request: Request) -> Response:
    return JSONResponse({"status": "healthy"})


async def _version(request: Request) -> Response:
    return JSONResponse({"version": "1.1.1"})
