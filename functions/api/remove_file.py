"""DELETE /v1/sandboxes/{id}/files."""

from __future__ import annotations

from functions.edge import wiring
from functions.edge.api import operation
from functions.edge.call import Answer, Call
from functions.edge.params import FileQuery


@operation({204: None})
def handler(call: Call, query: FileQuery) -> Answer:
    """Remove a file, or a directory with its content."""
    wiring.router().remove_file(call.tenant, call.sandbox_id, query.path)
    return Answer(204)
