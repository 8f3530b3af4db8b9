"""POST /v1/sandboxes/{id}/snapshots."""

from __future__ import annotations

from functions.edge import snapshots, wiring
from functions.edge.api import operation
from functions.edge.call import Answer, Call
from functions.edge.params import WAIT, CreateHeaders
from functions.edge.present import begun
from functions.edge.snapshots import SnapshotBody
from sandbox_router.lifecycle.snapshots import SnapshotRequest


@operation({201: snapshots.Snapshot, 202: snapshots.Snapshot})
def handler(call: Call, body: SnapshotBody, headers: CreateHeaders) -> Answer:
    """Take a snapshot of a running sandbox, or answer with the one this key already took.

    201 when it is ready, 202 while it is `creating`. It is a record of its own: it outlives its
    sandbox, and is deleted when its own time is over.
    """
    request = SnapshotRequest(
        request_id=call.request_id,
        fingerprint=body.fingerprint(call.sandbox_id),
        contents=body.contents,
        ttl_seconds=body.ttl_seconds,
        key=headers.key,
    )
    wait = WAIT if headers.wait is None else headers.wait
    router = wiring.router()
    reply = router.take_snapshot(call.tenant, call.sandbox_id, request, wait_seconds=wait)
    above, _, _ = call.place.rpartition("/sandboxes/")
    return begun(reply, f"{above}/snapshots", headers.wait)
