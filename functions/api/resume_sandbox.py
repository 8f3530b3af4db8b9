"""POST /v1/sandboxes/{id}/resume."""

from __future__ import annotations

from functions.edge import replies, wiring
from functions.edge.api import operation
from functions.edge.bodies import Nothing
from functions.edge.call import Answer, Call
from functions.edge.present import shown_with_kept


@operation({200: replies.PausedSandbox, 202: replies.PausedSandbox})
def handler(call: Call, body: Nothing) -> Answer:
    """Resume a paused sandbox. 202 while it is `resuming`; `kept` says what survived."""
    router = wiring.router()
    return shown_with_kept(router.resume(call.tenant, call.sandbox_id), router.clock)
