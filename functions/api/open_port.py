"""POST /v1/sandboxes/{id}/ports/{port}."""

from __future__ import annotations

from functions.edge import replies, wiring
from functions.edge.api import operation
from functions.edge.bodies import Nothing
from functions.edge.call import Answer, Call
from functions.edge.present import endpoint_view


@operation({200: replies.Endpoint})
def handler(call: Call, body: Nothing) -> Answer:
    """The preview URL of a port, and the headers it wants. Private by default."""
    endpoint = wiring.router().open_port(call.tenant, call.sandbox_id, call.port)
    return Answer(200, endpoint_view(endpoint))
