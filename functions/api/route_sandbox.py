"""POST /v1/route."""

from __future__ import annotations

from functions.edge import replies, wiring
from functions.edge.api import operation
from functions.edge.bodies import CreateBody
from functions.edge.call import Answer, Call
from functions.edge.present import route_view


@operation({200: replies.Route})
def handler(call: Call, body: CreateBody) -> Answer:
    """What a create with this body would do: pools in order, and why each other is not one.

    No provider is asked.
    """
    return Answer(200, route_view(wiring.router().route(call.tenant, body.to_spec())))
