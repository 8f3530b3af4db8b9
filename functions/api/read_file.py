"""GET /v1/sandboxes/{id}/files."""

from __future__ import annotations

from functions.catalog import FILE_BYTES
from functions.edge import wiring
from functions.edge.api import operation
from functions.edge.call import Answer, Call
from functions.edge.params import FileQuery


@operation({200: bytes})
def handler(call: Call, query: FileQuery) -> Answer:
    """A file's content, byte for byte; at most 4 MiB."""
    data = wiring.router().read_file(call.tenant, call.sandbox_id, query.path, FILE_BYTES)
    return Answer(200, data)
