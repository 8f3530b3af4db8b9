"""DELETE /v1/sandboxes/{id}/ports/{port}."""

from __future__ import annotations

from functions.edge import wiring
from functions.edge.api import operation
from functions.edge.call import Answer, Call


@operation({204: None})
def handler(call: Call) -> Answer:
    """End the exposure of a port."""
    wiring.router().close_port(call.tenant, call.sandbox_id, call.port)
    return Answer(204)
