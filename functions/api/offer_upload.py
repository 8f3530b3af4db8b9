"""POST /v1/sandboxes/{id}/files/uploads."""

from __future__ import annotations

from functions.edge import replies, wiring
from functions.edge.api import operation
from functions.edge.call import Answer, Call
from functions.edge.present import upload_view
from functions.edge.transfers import UploadBody


@operation({201: replies.Upload})
def handler(call: Call, body: UploadBody) -> Answer:
    """A URL that takes a file of at most 5 GiB in one request, for an hour.

    What was put there reaches its path by `takeUpload`, and not before. Whoever has the URL can put
    something there until then.
    """
    found = wiring.router().offer_upload(call.tenant, call.sandbox_id, body.path, body.size_bytes)
    return Answer(201, upload_view(found))
