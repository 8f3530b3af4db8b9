"""PATCH /v1/sandboxes/{id}."""

from __future__ import annotations

from functions.edge import replies, wiring
from functions.edge.api import operation
from functions.edge.bodies import UpdateBody
from functions.edge.call import Answer, Call
from functions.edge.present import shown
from sandbox_router.model.failure import Invalid


@operation({200: replies.Sandbox, 202: replies.Sandbox})
def handler(call: Call, body: UpdateBody) -> Answer:
    """Move the end of its life, change its idle time, or replace its labels. 202 while the
    provider has not confirmed the new end: it is asked until it has, or has refused.

    Several at once are as many changes, the end of life first: when that is refused, the others
    stay as they are; when the answer to the whole is lost, any may be done, and a repeat does no
    harm.
    """
    router, tenant, sandbox_id = wiring.router(), call.tenant, call.sandbox_id
    limit = wiring.settings().max_ttl_seconds
    if (body.ttl_seconds or 0) > limit:
        raise Invalid(fields=(("ttl_seconds", f"at most {limit} seconds here"),))
    box = None
    if body.ttl_seconds is not None:  # first: only this one can be refused by the provider
        box = router.extend(tenant, sandbox_id, body.ttl_seconds, shorten=body.shorten)
    if body.idle_timeout_seconds is not None:
        box = router.idle(tenant, sandbox_id, body.idle_timeout_seconds)
    if body.labels is not None:
        box = router.relabel(tenant, sandbox_id, dict(body.labels))
    assert box is not None  # the body says so
    return shown(box, router.clock, 202 if box.expiry_awaited else 200)
