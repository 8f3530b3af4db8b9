"""POST /v1/sandboxes/{id}/exec."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator

from functions.edge import replies, sse, wiring
from functions.edge.api import operation
from functions.edge.bodies import BUFFERED_SECONDS_MAX, JSON_SECONDS_MAX, CommandBody
from functions.edge.call import Answer, Call
from functions.edge.output import ended, wants_events
from sandbox_router.model.failure import Invalid, StreamingOff
from sandbox_router.ports import Exit, Output
from sandbox_router.router import Router


@operation(
    {200: replies.Execution},
    detail={200: "It ended, or its time was over; as events: it runs"},
    events=replies.EVENTS,
)
def handler(call: Call, body: CommandBody) -> Answer:
    """Run a command and answer with its output: at its end, or as it comes.

    With `Accept: text/event-stream` the answer is a stream of `started`, `stdout` and `stderr`,
    and then exactly one of `exit`, `error` and `timeout`; `id` rises by one, and `: ping` is sent
    in silence. What is refused before the command runs has its own status; later it is an `error`
    event with the problem document. Closing the stream ends the command.

    It reaches the provider at most once: when the answer is lost that is `unknown_outcome`, never
    a second run.
    """
    events = wants_events(call.header("Accept"))
    seconds = _seconds(body, events=events)
    router, started = wiring.router(), wiring.router().clock.now()
    output = router.run(call.tenant, call.sandbox_id, body.to_command(seconds))
    if events:
        return Answer(200, events=_events(call, body, router, output, seconds))
    outcome = ended(output, body.max_output_bytes)
    facts = {
        "exec_id": _exec_id(call),
        "duration_ms": max(0, router.clock.now() - started),
        "stderr_mode": _stderr_mode(router, call.tenant, call.sandbox_id),
    }
    return Answer(200, outcome.rendered(facts))


def _seconds(body: CommandBody, *, events: bool) -> float:
    """How long it may take in this form of answer; raises Invalid, StreamingOff."""
    streaming = wiring.settings().streaming
    if events and streaming:
        return body.timeout_seconds
    if events:
        raise StreamingOff
    limit = JSON_SECONDS_MAX if streaming else BUFFERED_SECONDS_MAX
    if "timeout_seconds" in body.model_fields_set and body.timeout_seconds > limit:
        reason = f"at most {limit} seconds when the answer is no event stream"
        raise Invalid(fields=(("timeout_seconds", reason),))
    return min(body.timeout_seconds, limit)


def _events(
    call: Call, body: CommandBody, router: Router, output: Iterator[Output | Exit], seconds: float
) -> sse.Frames:
    limited = "max_output_bytes" in body.model_fields_set
    run = sse.Run(
        exec_id=_exec_id(call),
        stderr_mode=_stderr_mode(router, call.tenant, call.sandbox_id),
        request_id=call.request_id,
        clock=router.clock,
        limit=body.max_output_bytes if limited else None,
        seconds=seconds,
    )
    return sse.Frames(output, run)


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
