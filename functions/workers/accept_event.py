"""Events of other systems: a sandbox is asked for, or no longer needed.

EventBridge calls this asynchronously and repeats what raises; so only what a repeat can mend does.
The rest becomes a dead letter.
"""

from __future__ import annotations

from typing import Any

from functions.catalog import WRITE
from functions.edge import wiring
from functions.edge.binding import body_of
from functions.edge.config import EventSource
from functions.edge.events import IN, Asked, CreateRequested, DestroyRequested
from functions.edge.log import log
from sandbox_router.lifecycle.create import CreateRequest
from sandbox_router.model.failure import Failure, Forbidden, Invalid


class Later(Exception):
    """Not now: EventBridge tries again. Without the failure, whose place a log would show."""


def handler(event: Any, context: Any) -> dict[str, str]:
    """Take one event, once per id."""
    asked = Asked.of(event)
    try:
        outcome = _taken(asked)
    except Failure as failure:
        log().warning("event not taken", extra={**asked.names, "code": failure.code})
        if failure.retryable:
            raise Later from None
        wiring.outward().letters.add(asked.letter(failure))
        return {"outcome": "refused"}
    log().info("event taken", extra={**asked.names, **outcome})
    return {"outcome": "taken"}


def _taken(asked: Asked) -> dict[str, str]:
    source = asked.admitted(wiring.outward().sources())
    model = IN.get(asked.type)
    if model is None:
        raise Invalid(fields=(("detail-type", f"must be one of {', '.join(IN)}"),))
    if WRITE not in source.scopes:
        raise Forbidden(f"This source lacks the scope {WRITE}")
    body = body_of(model, asked.told())
    if isinstance(body, CreateRequested):
        return _create(asked, source, body)
    assert isinstance(body, DestroyRequested)
    box = wiring.router().destroy(source.tenant, body.sandbox_id)
    return {"sandbox_id": box.id, "state": str(box.state)}


def _create(asked: Asked, source: EventSource, body: CreateRequested) -> dict[str, str]:
    """Stored and handed to the queue; no provider is asked here."""
    body.within(wiring.settings().max_ttl_seconds)
    request = CreateRequest(
        spec=body.to_spec(),
        fingerprint=body.fingerprint(),
        request_id=asked.id,
        key=f"evt:{asked.id}",
    )
    reply = wiring.router().create(source.tenant, request, wait_seconds=0)
    return {"sandbox_id": str(reply.record_id)}
