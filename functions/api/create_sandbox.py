"""POST /v1/sandboxes."""

from __future__ import annotations

from functions.edge import replies, wiring
from functions.edge.api import operation
from functions.edge.bodies import CreateBody
from functions.edge.call import Answer, Call
from functions.edge.params import WAIT, CreateHeaders
from sandbox_router.lifecycle.create import CreateRequest
from sandbox_router.lifecycle.once import Reply


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
    return Answer(reply.status, reply.body, _headers(call, reply, headers.wait))


def _headers(call: Call, reply: Reply, wait: int | None) -> dict[str, str]:
    found: dict[str, str] = {}
    if reply.record_id is not None and reply.status in (201, 202):
        found["Location"] = f"{call.place}/{reply.record_id}"
    if reply.retry_after is not None:
        found["Retry-After"] = str(max(0, reply.retry_after))
    if reply.replayed:
        found["Idempotent-Replayed"] = "true"
    if wait is not None and not (reply.replayed and reply.status == 202):
        found["Preference-Applied"] = f"wait={wait}"
    return found
