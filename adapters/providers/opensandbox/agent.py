"""The way to execd, the agent inside an OpenSandbox sandbox: the server's own proxy path.

`/v1/sandboxes/{id}/proxy/44772/...` is published in the server's OpenAPI document. It is the
address the operator configured and no other; the server takes the account's key off before it
hands a request on (api/proxy.py of opensandbox-server 1.1.1, SENSITIVE_HEADERS).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sandbox_router.model import failure as fail
from sandbox_router.model.failure import Rejected
from sandbox_router.model.secret import Secret
from sandbox_router.ports import Content, Ref

from ..answer import Rows, Verdicts
from ..http import Call, Http
from . import declare, wire

KEY_HEADER = "OPEN-SANDBOX-API-KEY"

_AGENT: Rows = {
    (404, "SANDBOX_NOT_FOUND"): fail.Gone,
    # Nobody listened, so nothing was delivered.
    (502, "BACKEND_CONNECTION_FAILED"): fail.Outage,
    (401, "MISSING_API_KEY"): fail.BrokenPool,
    (401, "INVALID_API_KEY"): fail.BrokenPool,
    # Any other 401 concerns the sandbox, never the account's key.
    (401, None): fail.Permission,
    (404, None): fail.PoolUnsupported,  # an execd that does not know the operation
    (None, "NOT_SUPPORTED"): fail.PoolUnsupported,
}
STARTS = Verdicts(_AGENT, wire.code_of)
PATHS = Verdicts({**_AGENT, (404, "FILE_NOT_FOUND"): fail.FileMissing}, wire.code_of)
"""Of calls that write: an error in the middle may have left something."""
READS = Verdicts(
    {
        **_AGENT,
        (404, "FILE_NOT_FOUND"): fail.FileMissing,
        (500, "RUNTIME_ERROR"): Rejected,  # such as a directory that should be a file
    },
    wire.code_of,
)


@dataclass(frozen=True)
class Agents:
    """Reaches the agent of any sandbox of an account. base: the server, without `/v1`."""

    http: Http
    base: str
    key: Secret
    seconds: float

    def call(
        self, ref: Ref, method: str, path: str, verdicts: Verdicts, *, query: str = ""
    ) -> Call:
        """A call to the agent, not yet made, without a body."""
        proxy = f"/v1/sandboxes/{declare.safe_id(ref.instance_id)}/proxy/{declare.AGENT_PORT}"
        return Call(
            method,
            f"{self.base}{proxy}{path}",
            "account",
            self.seconds,
            query=query,
            headers={KEY_HEADER: self.key},
            verdicts=verdicts,
        )


def carrying(call: Call, kind: str, body: bytes | Content, seconds: float) -> Call:
    """The call with a body of this content type, and its time in seconds."""
    headers = {**call.headers, "Content-Type": kind}
    return replace(call, headers=headers, body=body, timeout=seconds)
