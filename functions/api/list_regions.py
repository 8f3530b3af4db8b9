"""GET /v1/regions."""

from __future__ import annotations

from functions.edge import offer_replies, wiring
from functions.edge.api import operation
from functions.edge.call import Answer, Call
from functions.edge.offers import regions


@operation({200: offer_replies.Regions})
def handler(call: Call) -> Answer:
    """Names `region` may have in a create, and the pools each matches."""
    return Answer(200, {"data": regions(wiring.router().pools())})
