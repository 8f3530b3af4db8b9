"""DELETE /v1/sandboxes/{id}."""

from __future__ import annotations

from functions.edge import replies, wiring
from functions.edge.api import operation
from functions.edge.call import Answer, Call
from functions.edge.present import shown


@operation({202: replies.Sandbox, 204: None})
def handler(call: Call) -> Answer:
    """Destroy a sandbox. 204 once it is confirmed gone, 202 while it is `destroying`; safe to
    repeat.
    """
    router = wiring.router()
    box = router.destroy(call.tenant, call.sandbox_id)
    return Answer(204) if box.state.terminal else shown(box, router.clock, 202)
