"""POST /v1/sandboxes/{id}/files/uploads/{upload_id}."""

from __future__ import annotations

from functions.edge import wiring
from functions.edge.api import operation
from functions.edge.bodies import Nothing
from functions.edge.call import Answer, Call


@operation({204: None})
def handler(call: Call, body: Nothing) -> Answer:
    """Put what was uploaded in its place in the sandbox; parents are created.

    The file appears at its path whole: it is written beside it first, under a name that begins with
    a dot, and renamed. Where a provider renames over no file (OpenSandbox), an older one is removed
    just before. It takes less than 4 minutes, or 24 s in a deployment that does not stream: what
    takes longer is `too_slow`, and nothing was changed.

    Safe to repeat until it answers 204: a repeat may write the same bytes again, and after the
    first success it does nothing, even if the file was changed since; of two at once the slower
    writes last. An upload can be taken for 24 hours; its bytes are forgotten once they are in
    place.
    """
    seconds = wiring.seconds(call.row)
    wiring.router().take_upload(call.tenant, call.sandbox_id, call.upload_id, seconds=seconds)
    return Answer(204)
