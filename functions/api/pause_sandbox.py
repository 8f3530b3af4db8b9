"""POST /v1/sandboxes/{id}/pause."""

from __future__ import annotations

from functions.edge import replies, wiring
from functions.edge.api import operation
from functions.edge.bodies import PauseBody
from functions.edge.call import Answer, Call
from functions.edge.present import shown_with_kept


@operation({200: replies.PausedSandbox, 202: replies.PausedSandbox})
def handler(call: Call, body: PauseBody) -> Answer:
    """Pause a sandbox. 202 while it is `pausing`; `kept` says what survived."""
    router = wiring.router()
    box = router.pause(call.tenant, call.sandbox_id, keep=body.keep)
    return shown_with_kept(box, router.clock)
