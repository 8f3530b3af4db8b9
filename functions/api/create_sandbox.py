"""POST /v1/sandboxes."""

from __future__ import annotations

from functions.edge import replies, wiring
from functions.edge.api import operation
from functions.edge.bodies import CreateBody
from functions.edge.call import Answer, Call
from functions.edge.params import WAIT, CreateHeaders
from functions.edge.present import begun
from sandbox_router.lifecycle.create import CreateRequest


@operation({201: replies.Sandbox, 202: replies.Sandbox})
def handler(call: Call, body: CreateBody, headers: CreateHeaders) -> Answer:
    """Create a sandbox, or answer with the one this key already made.

    201 when it runs; 202 when it is still `starting` after the wait. A retry with the same
    `Idempotency-Key` and body gets the first settled result again; while the first request is
    still under way it gets 202 with the same sandbox at once.
    """
    body.within(wiring.settings().max_ttl_seconds)
    request = CreateRequest(
        spec=body.to_spec(),
        cargo=body.to_cargo(),
        key=headers.key,
        fingerprint=body.fingerprint(),
        request_id=call.request_id,
    )
    wait = WAIT if headers.wait is None else headers.wait
    reply = wiring.router().create(call.tenant, request, wait_seconds=wait)
    return begun(reply, call.place, headers.wait)
