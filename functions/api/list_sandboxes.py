"""GET /v1/sandboxes."""

from __future__ import annotations

from functions.edge import replies, wiring
from functions.edge.api import operation
from functions.edge.call import Answer, Call
from functions.edge.params import ListQuery
from sandbox_router.model.sandbox import State
from sandbox_router.model.view import sandbox_view
from sandbox_router.router import Filters


@operation({200: replies.Sandboxes})
def handler(call: Call, query: ListQuery) -> Answer:
    """List sandboxes, newest first; without a `state` filter all but the destroyed ones."""
    filters = Filters(
        states=frozenset(State(name) for name in query.state) or None,
        labels=query.labels,
        provider=query.provider,
        created_after=query.created_after_ms,
    )
    router = wiring.router()
    boxes, cursor = router.list(call.tenant, filters, limit=query.limit, cursor=query.cursor)
    now = router.clock.now()
    return Answer(200, {"data": [sandbox_view(box, now) for box in boxes], "next_cursor": cursor})
