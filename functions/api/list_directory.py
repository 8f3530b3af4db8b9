"""GET /v1/sandboxes/{id}/directories."""

from __future__ import annotations

from functions.edge import replies, wiring
from functions.edge.api import operation
from functions.edge.call import Answer, Call
from functions.edge.params import PathQuery
from functions.edge.present import directory_view


@operation({200: replies.Directory})
def handler(call: Call, query: PathQuery) -> Answer:
    """Direct children of a directory, by name."""
    entries = wiring.router().list_directory(call.tenant, call.sandbox_id, query.path)
    return Answer(200, directory_view(entries))
