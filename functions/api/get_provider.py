"""GET /v1/providers/{kind}."""

from __future__ import annotations

from functions.edge import offer_replies, wiring
from functions.edge.api import operation
from functions.edge.call import Answer, Call
from functions.edge.offers import providers
from sandbox_router.model.failure import NotFound


@operation({200: offer_replies.ProviderKind})
def handler(call: Call) -> Answer:
    """One provider kind."""
    router, kind = wiring.router(), call.kind
    kinds = providers(router.pools(), router.broken())
    found = next((shown for shown in kinds if shown["kind"] == kind), None)
    if found is None:
        raise NotFound
    return Answer(200, found)
