"""POST /v1/sandboxes/{id}/files/downloads."""

from __future__ import annotations

from functions.edge import replies, wiring
from functions.edge.api import operation
from functions.edge.call import Answer, Call
from functions.edge.present import download_view
from functions.edge.transfers import DownloadBody


@operation({201: replies.Download})
def handler(call: Call, body: DownloadBody) -> Answer:
    """Copy a file of at most 5 GiB to where the URL of the answer reads it, for an hour.

    The copy is made before the answer, in less than 4 minutes, or 27 s in a deployment that does
    not stream: what takes longer is `too_slow`, and no part of it is kept. It outlives the sandbox,
    and is gone after two days at the latest. Whoever has the URL can read it.
    """
    found = wiring.router().offer_download(
        call.tenant, call.sandbox_id, body.path, seconds=wiring.seconds(call.row)
    )
    return Answer(201, download_view(found))
