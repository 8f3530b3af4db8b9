"""E2B's control plane. Facts: openapi.yml, and the newer operations of the SDK 2.63.0."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from infra.local.host.cell import CellError
from infra.local.host.config import Account
from infra.local.host.dialects.e2b import bodies, listing, views
from infra.local.host.dialects.e2b.errors import ApiError, sandbox_not_found
from infra.local.host.dialects.e2b.idempotency import Keys
from infra.local.host.dialects.e2b.snapshots import Snapshots
from infra.local.host.engine import Engine, StateError
from infra.local.host.instance import Gone, Instance, State
from infra.local.host.instance import Request as Wanted
from infra.local.host.measure import Meter

Handler = Callable[[Request], Awaitable[Response]]
_KEY_HEADER = "x-api-key"


class ControlPlane:
    """The operations on sandboxes from outside."""

    def __init__(self, engine: Engine, accounts: tuple[Account, ...], tokens: views.Tokens) -> None:
        self._engine = engine
        self._accounts = accounts
        self._tokens = tokens
        self._keys = Keys()
        self._meter = Meter()
        self._snapshots = Snapshots(engine, self._authorize, self._instance)

    def routes(self) -> list[Route]:
        """Return the routes, fixed paths before those with an id."""
        one = "/sandboxes/{id}"
        return [
            Route("/v2/sandboxes", self._create, methods=["POST"]),
            Route("/v2/sandboxes", self._list, methods=["GET"]),
            Route("/sandboxes", self._create_old, methods=["POST"]),
            Route("/sandboxes", self._list_old, methods=["GET"]),
            Route("/sandboxes/metrics", self._metrics_of_many, methods=["GET"]),
            Route(one, self._get, methods=["GET"]),
            Route(one, self._delete, methods=["DELETE"]),
            Route(one + "/pause", self._pause, methods=["POST"]),
            Route("/v2" + one + "/connect", self._connect, methods=["POST"]),
            Route(one + "/connect", self._connect, methods=["POST"]),
            Route(one + "/resume", self._resume, methods=["POST"]),
            Route(one + "/timeout", self._timeout, methods=["POST"]),
            Route(one + "/refreshes", self._refresh, methods=["POST"]),
            Route(one + "/metrics", self._metrics, methods=["GET"]),
            *self._snapshots.routes(),
            Route(one + "/{other:path}", self._unsupported, methods=["GET", "POST", "PUT"]),
            Route("/{other:path}", self._unsupported, methods=["GET", "POST", "PUT", "DELETE"]),
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
        key = request.headers.get(_KEY_HEADER)
        if key is None:
            raise ApiError(401, "authorization header is missing")
        account = self.account_of(key)
        if account is None:
            raise ApiError(401, "invalid API key")
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
        body = await bodies.json_body(request)
        key = request.headers.get("idempotency-key")
        if key is None:
            return JSONResponse(await self._make(request, account, body, 300, True), 201)
        answer = self._keys.begin(account.name, key, body)
        if answer is None:
            try:
                answer = await self._make(request, account, body, 300, True)
            except BaseException:
                self._keys.release(account.name, key)
                raise
            self._keys.finish(account.name, key, answer)
        request.scope["host.call"].instance_id = answer["sandboxID"]
        return JSONResponse(answer, 201)

    async def _create_old(self, request: Request) -> Response:
        account = self._authorize(request)
        body = await bodies.json_body(request)
        secured = bodies.boolean_of(body, "secure", False)
        return JSONResponse(await self._make(request, account, body, 15, secured), 201)

    async def _make(
        self,
        request: Request,
        account: Account,
        body: dict[str, Any],
        default_timeout: int,
        secured: bool,
    ) -> dict[str, Any]:
        wanted = bodies.new_sandbox(
            body,
            account.name,
            default_timeout=default_timeout,
            secured=secured,
            can_cut=self._engine.tier.cuts_network,
        )
        if wanted.template not in self._engine.templates:
            wanted = self._restored(account, wanted)
        self._check_quota(account)
        try:
            instance = await self._engine.create(wanted)
        except (CellError, StateError) as error:
            message = f"Failed to create sandbox: {error}"
            raise ApiError(500, message, "sandbox_create_failed") from error
        request.scope["host.call"].instance_id = instance.id
        return views.created(instance, self._tokens)

    def _restored(self, account: Account, wanted: Wanted) -> Wanted:
        capture = self._snapshots.resolve(account, wanted.template)
        if capture is None:
            raise ApiError(404, f"template '{wanted.template}' not found")
        return replace(wanted, template=capture.id, capture=capture.id, shape=capture.size)

    def _check_quota(self, account: Account) -> None:
        if account.max_instances is None:
            return
        counted = (State.STARTING, State.RUNNING, State.PAUSING)
        running = sum(
            one.request.account == account.name and one.state in counted
            for one in self._engine.instances()
        )
        if running >= account.max_instances:
            text = f"you have reached the maximum number of concurrent E2B sandboxes ({running})"
            raise ApiError(429, text)

    async def _get(self, request: Request) -> Response:
        return JSONResponse(views.detail(self._instance(request), self._tokens))

    async def _list(self, request: Request) -> Response:
        account = self._authorize(request)
        query = listing.read_query(request.query_params)
        page = listing.find(self._of(account), query, request.scope.get("host.list_lag", 0.0))
        headers = {} if page.next_token is None else {"X-Next-Token": page.next_token}
        if "running" in query.states:
            headers["X-Total-Running"] = str(page.total_running)
        return JSONResponse([views.listed(one) for one in page.instances], headers=headers)

    async def _list_old(self, request: Request) -> Response:
        account = self._authorize(request)
        query = listing.read_query(request.query_params)
        shown = [one for one in self._of(account) if one.state is State.RUNNING]
        page = listing.find(shown, query, request.scope.get("host.list_lag", 0.0))
        return JSONResponse([views.listed(one) for one in page.instances])

    def _of(self, account: Account) -> list[Instance]:
        return [one for one in self._engine.instances() if one.request.account == account.name]

    async def _delete(self, request: Request) -> Response:
        await self._engine.destroy(self._instance(request), Gone.DELETED)
        return Response(status_code=204)

    async def _pause(self, request: Request) -> Response:
        instance = self._instance(request)
        body = await bodies.json_body(request, required=False)
        memory = bodies.boolean_of(body, "memory", True)
        try:
            await self._engine.pause(instance, keep_memory=memory)
        except StateError as error:
            raise ApiError(409, f"sandbox {instance.id} cannot be paused: {error}") from error
        return Response(status_code=204)

    async def _connect(self, request: Request) -> Response:
        instance = self._instance(request)
        body = await bodies.json_body(request)
        timeout = bodies.timeout_of(body, 300)
        if not bodies.boolean_of(body, "memory", True):
            raise ApiError(400, "resuming from disk only is not supported by this host")
        resumed = await self._resume_if_paused(instance, timeout)
        # Connecting to a running sandbox only ever extends its time.
        if not resumed and timeout > instance.seconds_left():
            self._engine.set_lifetime(instance, timeout)
        answer = views.created(instance, self._tokens)
        return JSONResponse(answer, 201 if resumed else 200)

    async def _resume_if_paused(self, instance: Instance, timeout: int) -> bool:
        if instance.state is State.PAUSING:
            raise ApiError(409, f"sandbox {instance.id} is being paused")
        if instance.state is not State.PAUSED:
            return False
        try:
            await self._engine.resume(instance, timeout)
        except StateError as error:
            if instance.is_in(State.RUNNING):
                return False
            raise ApiError(409, f"sandbox {instance.id}: {error}") from error
        return True

    async def _resume(self, request: Request) -> Response:
        instance = self._instance(request)
        body = await bodies.json_body(request, required=False)
        if not await self._resume_if_paused(instance, bodies.timeout_of(body, 15)):
            raise ApiError(409, f"sandbox {instance.id} is already running")
        return JSONResponse(views.created(instance, self._tokens), 201)

    async def _timeout(self, request: Request) -> Response:
        instance = self._instance(request)
        body = await bodies.json_body(request)
        if instance.state is not State.RUNNING:
            raise sandbox_not_found(instance.id)
        self._engine.set_lifetime(instance, bodies.timeout_of(body, None))
        return Response(status_code=204)

    async def _refresh(self, request: Request) -> Response:
        instance = self._instance(request)
        body = await bodies.json_body(request, required=False)
        duration = bodies.timeout_of({"timeout": body.get("duration", 15)}, None)
        if instance.state is not State.RUNNING:
            raise sandbox_not_found(instance.id)
        if duration > instance.seconds_left():
            self._engine.set_lifetime(instance, duration)
        return Response(status_code=204)

    async def _metrics(self, request: Request) -> Response:
        return JSONResponse([await self._measure(self._instance(request))])

    async def _metrics_of_many(self, request: Request) -> Response:
        account = self._authorize(request)
        ids = request.query_params.get("sandbox_ids", "").split(",")
        found = [one for one in self._of(account) if one.id in ids and views.visible(one)]
        return JSONResponse({"sandboxes": {one.id: await self._measure(one) for one in found}})

    async def _measure(self, instance: Instance) -> dict[str, Any]:
        used = await self._meter.measure(instance)
        return views.metric(instance, used.cpu_percent, used.memory_bytes, used.disk_bytes)

    async def _unsupported(self, request: Request) -> Response:
        self._authorize(request)
        raise ApiError(501, f"{request.method} {request.url.path} is not supported by this host")
