"""GET /v1/health."""

from __future__ import annotations

from functions.edge import replies
from functions.edge.api import operation
from functions.edge.call import Answer, Call


@operation({200: replies.Health})
def handler(call: Call) -> Answer:
    """Liveness: it answers without a store or a provider."""
    return Answer(200, {"status": "ok"})
