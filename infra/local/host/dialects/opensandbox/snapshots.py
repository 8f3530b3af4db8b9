"""OpenSandbox's snapshots, as the Docker runtime makes them: images of a container's disk.

Facts: sandbox-lifecycle.yml at 3bb6fad and opensandbox-server 1.1.1 (services/snapshot_service.py,
snapshot_restore.py, docker/snapshot_runtime.py, api/lifecycle.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from infra.local.host.captures import Capture, CaptureState
from infra.local.host.config import Account
from infra.local.host.dialects.opensandbox import bodies, listing, views
from infra.local.host.dialects.opensandbox.errors import ApiError, snapshot_not_found
from infra.local.host.engine import Engine
from infra.local.host.instance import Instance, State, now_ms


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
        """Return the routes."""
        return [
            Route("/sandboxes/{id}/snapshots", self._take, methods=["POST"]),
            Route("/snapshots", self._list, methods=["GET"]),
            Route("/snapshots/{snapshot}", self._get, methods=["GET"]),
            Route("/snapshots/{snapshot}", self._delete, methods=["DELETE"]),
        ]

    def restorable(self, account: Account, snapshot_id: str) -> None:
        """Raise unless a sandbox can be made of the snapshot now."""
        capture = self._find(account, snapshot_id)
        if capture.state is not CaptureState.READY:
            text = f"Snapshot {snapshot_id} is not ready for restore."
            raise ApiError(409, "SNAPSHOT::NOT_READY", text)

    def _find(self, account: Account, snapshot_id: str) -> Capture:
        capture = self._engine.captures.find(snapshot_id, account.name)
        if capture is None:
            raise snapshot_not_found(snapshot_id)
        return capture

    async def _take(self, request: Request) -> Response:
        instance = self._instance(request)
        body = await bodies.json_body(request) if await request.body() else {}
        name = bodies.name_of(body)
        if instance.state is not State.RUNNING:
            text = "Snapshot can only be created from a Running sandbox."
            raise ApiError(409, "SNAPSHOT::INVALID_SOURCE_STATE", text)
        captures = self._engine.captures
        capture = captures.begin(instance, name)
        accepted = views.snapshot(capture)
        if request.scope.get("host.capture_fails"):
            captures.fail(capture)
        else:
            seconds = request.scope.get("host.capture_seconds", 0.0)
            self._engine.capture_later(instance, capture, seconds=seconds)
        return JSONResponse(accepted, 202, {"Location": f"/v1/snapshots/{capture.id}"})

    async def _list(self, request: Request) -> Response:
        account, params = self._authorize(request), request.query_params
        source, name = params.get("sandboxId"), params.get("name")
        states, lag = params.getlist("state"), request.scope.get("host.list_lag", 0.0) * 1000
        found = [
            views.snapshot(one)
            for one in reversed(self._engine.captures.of(account.name))
            if now_ms() - one.created_ms >= lag
            and source in (None, one.source)
            and name in (None, one.name)
        ]
        found = [one for one in found if not states or one["status"]["state"] in states]
        return JSONResponse(listing.page_of(found, params))

    async def _get(self, request: Request) -> Response:
        account = self._authorize(request)
        return JSONResponse(views.snapshot(self._find(account, request.path_params["snapshot"])))

    async def _delete(self, request: Request) -> Response:
        account = self._authorize(request)
        capture = self._find(account, request.path_params["snapshot"])
        if capture.state is CaptureState.CREATING:
            text = f"Snapshot {capture.id} is still being created and cannot be deleted"
            raise ApiError(409, "SNAPSHOT::INVALID_STATE", text)
        capture.state = CaptureState.DELETING  # and stays it where Docker refuses
        instances = self._engine.instances()
        if any(one.alive and one.request.capture == capture.id for one in instances):
            text = "snapshot image cannot be deleted due to a conflict"
            raise ApiError(409, "SNAPSHOT::DELETE_CONFLICT", text)
        await asyncio.to_thread(self._engine.captures.remove, capture)
        return Response(status_code=204)
