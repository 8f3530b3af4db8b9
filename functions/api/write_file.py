"""PUT /v1/sandboxes/{id}/files."""

from __future__ import annotations

from functions.edge import wiring
from functions.edge.api import operation
from functions.edge.call import Answer, Call
from functions.edge.params import FileQuery


@operation({204: None})
def handler(call: Call, query: FileQuery, body: bytes) -> Answer:
    """Create or replace a file with the body, byte for byte; at most 4 MiB. Parents are created."""
    wiring.router().write_file(call.tenant, call.sandbox_id, query.path, body)
    return Answer(204)
