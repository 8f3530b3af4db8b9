"""GET /v1/providers."""

from __future__ import annotations

from functions.edge import offer_replies, wiring
from functions.edge.api import operation
from functions.edge.call import Answer, Call
from functions.edge.offers import providers


@operation({200: offer_replies.Providers})
def handler(call: Call) -> Answer:
    """Provider kinds with facts, abilities, prices and the pools of each; null is unknown."""
    router = wiring.router()
    return Answer(200, {"data": providers(router.pools(), router.broken())})
