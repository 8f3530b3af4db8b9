"""DELETE /v1/snapshots/{snapshot_id}."""

from __future__ import annotations

from functions.edge import snapshots, wiring
from functions.edge.api import operation
from functions.edge.call import Answer, Call
from sandbox_router.model.view import snapshot_view


@operation({202: snapshots.Snapshot, 204: None})
def handler(call: Call) -> Answer:
    """Delete a snapshot. 204 once it is confirmed gone, 202 while it is `deleting`; safe to
    repeat. Sandboxes made from it live on.
    """
    found = wiring.router().destroy_snapshot(call.tenant, call.snapshot_id)
    return Answer(204) if found.over else Answer(202, snapshot_view(found))
