"""GET /v1/images."""

from __future__ import annotations

from functions.edge import offer_replies, wiring
from functions.edge.api import operation
from functions.edge.call import Answer, Call
from functions.edge.offers import images


@operation({200: offer_replies.Images})
def handler(call: Call) -> Answer:
    """The image table: names, and where and at which sizes each is prepared."""
    return Answer(200, {"data": images(wiring.router().pools())})
