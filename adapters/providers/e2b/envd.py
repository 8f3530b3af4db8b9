"""The way to envd, the agent inside an E2B sandbox, and its unary calls.

Facts: packages/envd/spec of github.com/e2b-dev/infra at 54693ff; the shared address
`sandbox.<domain>` with its two routing headers and the proxy's 502 texts from the SDK e2b 2.63.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sandbox_router.model import failure as fail
from sandbox_router.model.failure import ProtocolBroken, Rejected, Unknown
from sandbox_router.model.secret import Secret
from sandbox_router.ports import Endpoint, Ref

from ..answer import Rows, Verdicts
from ..http import Call, Credential, Http
from . import declare, wire

PORT = 49983
ID_HEADER, PORT_HEADER = "e2b-sandbox-id", "e2b-sandbox-port"
TRAFFIC_HEADER = "e2b-traffic-access-token"
SANDBOX: Credential = "sandbox"


def code_of(status: int, body: Mapping[str, Any]) -> str | None:
    """Connect's error code, or ours for the two reasons of the proxy's 502."""
    message = str(body.get("message", ""))
    if status == 502 and "was not found" in message:
        return "no_sandbox"
    if status == 502 and "port is not open" in message:
        return "no_agent"
    code = body.get("code")
    return code if isinstance(code, str) else None


AGENT: Rows = {
    (502, "no_sandbox"): fail.Gone,
    (502, "no_agent"): fail.Outage,  # the proxy could not deliver it
    # These concern the sandbox's token or user, never the account's key.
    (401, None): fail.Permission,
    (None, "unauthenticated"): fail.Permission,
    (None, "permission_denied"): fail.Permission,
    (None, "invalid_argument"): Rejected,
    (None, "failed_precondition"): Rejected,
    (None, "unimplemented"): fail.PoolUnsupported,
    (None, "resource_exhausted"): fail.RateLimited,
}
"""What an agent's or the proxy's answer means; a code that is not here leaves it unknown."""

CALLS = Verdicts(AGENT, code_of)
PATHS = Verdicts(
    {
        **AGENT,
        (404, None): fail.FileMissing,
        (None, "not_found"): fail.FileMissing,
        (507, None): Rejected,  # the sandbox's disk is full
    },
    code_of,
)


class Agents:
    """Reaches the agent of any sandbox of an account. `url`: one address for all, or None."""

    def __init__(self, http: Http, url: str | None, timeout: float) -> None:
        self.http = http
        self.timeout = timeout
        self._url = url.rstrip("/") if url else None

    def address(self, ref: Ref) -> str:
        """The base URL of a sandbox's agent; raises ProtocolBroken for a host that is not E2B's."""
        return self._url or self._permitted(f"https://sandbox.{self._domain(ref)}")

    def headers(self, ref: Ref) -> dict[str, str | Secret]:
        """What routes and admits a request to the agent."""
        token = ref.access.get(wire.TOKEN)
        admit: dict[str, str | Secret] = {} if token is None else {"X-Access-Token": token}
        return {**self._route(ref, PORT), **admit}

    def endpoint(self, ref: Ref, port: int) -> Endpoint:
        """A port's own URL; with one address for all, that address and the routing headers."""
        token = ref.access.get(wire.TRAFFIC)
        if token is None:
            raise fail.PoolUnsupported("E2B gave no token for this sandbox's ports")
        admit = {TRAFFIC_HEADER: token.reveal()}
        if self._url is not None:
            return Endpoint(self._url, {**self._route(ref, port), **admit})
        host = f"{port}-{declare.instance_id(ref.instance_id)}.{self._domain(ref)}"
        return Endpoint(self._permitted(f"https://{host}"), admit)

    def unary(
        self,
        ref: Ref,
        procedure: str,
        body: Mapping[str, Any],
        verdicts: Verdicts,
        timeout: float | None = None,
    ) -> dict[str, Any]:
        """One Connect call in JSON; raises what `verdicts` say. `timeout` in seconds."""
        return self.http.call(
            Call(
                "POST",
                f"{self.address(ref)}/{procedure}",
                SANDBOX,
                timeout or self.timeout,
                headers={
                    **self.headers(ref),
                    "Content-Type": "application/json",
                    "Connect-Protocol-Version": "1",
                },
                body=wire.document(body),
                verdicts=verdicts,
            )
        ).object()

    def _route(self, ref: Ref, port: int) -> dict[str, str]:
        return {ID_HEADER: declare.instance_id(ref.instance_id), PORT_HEADER: str(port)}

    def _domain(self, ref: Ref) -> str:
        domain = ref.access.get(wire.AT)
        return declare.DOMAIN if domain is None else domain.reveal()

    def _permitted(self, url: str) -> str:
        if self.http.permits(url, SANDBOX):
            return url
        raise ProtocolBroken


def trailer_failure(code: str, message: str) -> type[fail.ProviderFailure]:
    """What an error at the end of a stream means when nothing was started yet."""
    known = code_of(502, {"message": message}) if code == "unavailable" else code
    for key in ((502, known), (None, known)):
        if key in AGENT:
            return AGENT[key]
    return Unknown


def agent_version(ref: Ref) -> tuple[int, ...]:
    """The version of a sandbox's agent; one that is not known counts as new."""
    told = ref.access.get(wire.VERSION)
    return declare.agent_version("" if told is None else told.reveal())
