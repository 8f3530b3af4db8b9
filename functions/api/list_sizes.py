"""GET /v1/sizes."""

from __future__ import annotations

from functions.edge import offer_replies, wiring
from functions.edge.api import operation
from functions.edge.bodies import DEFAULT_SIZE
from functions.edge.call import Answer, Call
from functions.edge.offers import sizes
from sandbox_router.model.size import SUFFIXES


@operation({200: offer_replies.Sizes})
def handler(call: Call) -> Answer:
    """Sizes that can be asked for, and the pools that serve each."""
    data = sizes(wiring.router().pools())
    return Answer(200, {"data": data, "suffixes": dict(SUFFIXES), "default": DEFAULT_SIZE})
