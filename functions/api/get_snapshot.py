"""GET /v1/snapshots/{snapshot_id}."""

from __future__ import annotations

from functions.edge import snapshots, wiring
from functions.edge.api import operation
from functions.edge.call import Answer, Call
from sandbox_router.model.view import snapshot_view


@operation({200: snapshots.Snapshot})
def handler(call: Call) -> Answer:
    """The record of a snapshot."""
    return Answer(200, snapshot_view(wiring.router().snapshot(call.tenant, call.snapshot_id)))
