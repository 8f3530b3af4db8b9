"""GET /v1/sandboxes/{id}."""

from __future__ import annotations

from functions.edge import replies, wiring
from functions.edge.api import operation
from functions.edge.call import Answer, Call
from functions.edge.params import GetQuery
from functions.edge.present import shown


@operation({200: replies.Sandbox})
def handler(call: Call, query: GetQuery) -> Answer:
    """The record of a sandbox; with `refresh=true` the provider is looked at first."""
    router = wiring.router()
    return shown(router.get(call.tenant, call.sandbox_id, refresh=query.refresh), router.clock)
