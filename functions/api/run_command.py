"""POST /v1/sandboxes/{id}/exec."""

from __future__ import annotations

import base64
import hashlib

from functions.edge import replies, wiring
from functions.edge.api import operation
from functions.edge.bodies import CommandBody
from functions.edge.call import Answer, Call
from functions.edge.output import ended, wants_events
from sandbox_router.model.failure import Unsupported
from sandbox_router.router import Router


@operation({200: replies.Execution}, detail={200: "It ended, or its time was over"})
def handler(call: Call, body: CommandBody) -> Answer:
    """Run a command and answer with its output at its end.

    It reaches the provider at most once: when the answer is lost that is `unknown_outcome`, never
    a second run.
    """
    if wants_events(call.header("Accept")):
        raise Unsupported("Server-sent events are not available in this version")
    router = wiring.router()
    sandbox_id, started = call.sandbox_id, router.clock.now()
    outcome = ended(router.run(call.tenant, sandbox_id, body.to_command()), body.max_output_bytes)
    facts = {
        "exec_id": _exec_id(call),
        "duration_ms": max(0, router.clock.now() - started),
        "stderr_mode": _stderr_mode(router, call.tenant, sandbox_id),
    }
    return Answer(200, outcome.rendered(facts))


def _exec_id(call: Call) -> str:
    """Unique as the request is: no second source of chance is needed."""
    digest = hashlib.sha256(f"{call.request_id} {call.sandbox_id}".encode()).digest()
    return "exec-" + base64.b32encode(digest).decode().lower()[:26]


def _stderr_mode(router: Router, tenant: str, sandbox_id: str) -> str:
    """Only where some pool merges both streams the sandbox's own pool must be looked up."""
    merging = {p.id for p in router.pools() if p.profile.detail("exec", "stderr") == "merged"}
    if not merging:
        return "separate"
    server = router.get(tenant, sandbox_id).server
    return "merged" if server is not None and server.pool_id in merging else "separate"
