"""Errors in E2B's words.

Facts: E2B's published openapi.yml (schema Error), envd.yaml, and what its Python SDK 2.63.0 reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from starlette.responses import JSONResponse, Response

from infra.local.host.calls import Call
from infra.local.host.faults import Fault


class ApiError(Exception):
    """An error answer of the control plane: `code` repeats the status, or the SDK fails on it."""

    def __init__(
        self,
        status: int,
        message: str,
        error_code: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.error_code = error_code
        self.headers = headers

    def response(self) -> Response:
        """Return it as an HTTP answer."""
        body: dict[str, object] = {"code": self.status, "message": self.message}
        if self.error_code is not None:
            body["error_code"] = self.error_code
        return JSONResponse(body, self.status, dict(self.headers or {}))


@dataclass(frozen=True, slots=True)
class _Words:
    status: int
    message: str
    error_code: str | None = None


_BUSY = _Words(
    503,
    "Sandbox 'i0' cannot be snapshotted right now because its node is busy, please retry",
)
_RATE = _Words(429, "Rate limit exceeded")
_FAULTS: Mapping[str, _Words] = {
    "capacity": _Words(
        503, "no capacity is available for this sandbox right now", "sandbox_capacity_unavailable"
    ),
    "rate_limited": _RATE,
    "quota": _Words(429, "you have reached the maximum number of concurrent E2B sandboxes (20)"),
    "unauthorized": _Words(401, "invalid API key"),
    "forbidden": _Words(403, "the team is blocked"),
    "policy": _Words(403, "this use is not allowed by the acceptable use policy"),
    "invalid": _Words(400, "invalid request"),
    "not_found": _Words(404, "not found"),
    "conflict": _Words(409, "the sandbox is being changed by another request"),
    "error_500": _Words(500, "internal server error", "internal_server_error"),
    "error_503": _Words(503, "the service is unavailable"),
    "made_503": _Words(503, "the service is unavailable"),
    "late": _Words(504, "upstream request timeout"),
}


def refusal(fault: Fault, call: Call) -> Response:
    """Say a fault as the control plane or the edge before a sandbox would."""
    words = _FAULTS[fault.fault]
    if (fault.fault, call.op) == ("capacity", "snapshot"):
        words = _BUSY
    headers = {}
    if words is _RATE:
        headers = {
            "Retry-After": str(fault.retry_after),
            "RateLimit-Limit": "100",
            "RateLimit-Remaining": "0",
            "RateLimit-Reset": str(fault.retry_after),
        }
    return ApiError(words.status, words.message, words.error_code, headers).response()


def sandbox_not_found(instance_id: str) -> ApiError:
    """Say that the control plane has no such sandbox."""
    return ApiError(404, f"sandbox {instance_id} not found")


def edge_error(instance_id: str, message: str) -> Response:
    """Say in the words of the proxy before the sandboxes that one cannot be reached."""
    return JSONResponse({"sandboxId": instance_id, "message": message, "code": 502}, 502)
