"""GET /v1/snapshots."""

from __future__ import annotations

from functions.edge import snapshots, wiring
from functions.edge.api import operation
from functions.edge.call import Answer, Call
from functions.edge.snapshots import SnapshotsQuery
from sandbox_router.lifecycle.snapshots import SnapshotFilters
from sandbox_router.model.snapshot import SnapshotState
from sandbox_router.model.view import snapshot_view


@operation({200: snapshots.Snapshots})
def handler(call: Call, query: SnapshotsQuery) -> Answer:
    """List snapshots, newest first; without a `state` filter all but the deleted ones."""
    filters = SnapshotFilters(
        states=frozenset(SnapshotState(name) for name in query.state) or None,
        sandbox_id=query.sandbox_id,
        created_after=query.created_after_ms,
    )
    router = wiring.router()
    found, cursor = router.snapshots(call.tenant, filters, limit=query.limit, cursor=query.cursor)
    return Answer(200, {"data": [snapshot_view(one) for one in found], "next_cursor": cursor})
