"""Errors in OpenSandbox's words, {code, message}.

Facts: opensandbox-server 1.1.1 (services/constants.py, middleware/auth.py, api/proxy.py) and
components/execd/pkg/web/model/error.go at 3bb6fad. The server itself limits no rate and has no
policy: what is said for those is what a gateway before it could say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from starlette.responses import JSONResponse, Response

from infra.local.host.calls import Call
from infra.local.host.faults import Fault


class ApiError(Exception):
    """An error answer of the server or of execd."""

    def __init__(
        self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.headers = headers

    def response(self) -> Response:
        """Return it as an HTTP answer."""
        body = {"code": self.code, "message": self.message}
        return JSONResponse(body, self.status, dict(self.headers or {}))


class Unprocessable(ApiError):
    """A body or parameter the server's framework does not take: its own shape, without a code."""

    def __init__(self, message: str) -> None:
        super().__init__(422, "", message)

    def response(self) -> Response:
        """Return it as FastAPI says it."""
        problem = {"loc": ["body"], "msg": self.message, "type": "value_error"}
        return JSONResponse({"detail": [problem]}, self.status)


@dataclass(frozen=True, slots=True)
class _Words:
    status: int
    code: str
    message: str
    waits: bool = False


_UNAVAILABLE = _Words(503, "SERVICE_UNAVAILABLE", "The service is unavailable.")
_NO_SNAPSHOT = _Words(404, "SNAPSHOT::NOT_FOUND", "Snapshot not found")
_FAULTS: Mapping[str, _Words] = {
    "capacity": _Words(
        429,
        "KUBERNETES::POOL_CAPACITY_EXHAUSTED",
        "No Pool capacity became available before the acquisition timeout.",
        waits=True,
    ),
    "rate_limited": _Words(429, "TOO_MANY_REQUESTS", "Too many requests.", waits=True),
    "quota": _Words(403, "KUBERNETES::QUOTA_EXCEEDED", "Namespace ResourceQuota exceeded."),
    "unauthorized": _Words(401, "INVALID_API_KEY", "Authentication credentials are invalid."),
    "forbidden": _Words(403, "FORBIDDEN", "The authenticated user lacks permission."),
    "policy": _Words(403, "DENIED_BY_POLICY", "The request was denied by an admission policy."),
    "invalid": _Words(400, "SANDBOX::INVALID_PARAMETER", "Invalid request."),
    "not_found": _Words(404, "DOCKER::SANDBOX_NOT_FOUND", "Sandbox not found."),
    "conflict": _Words(409, "SANDBOX::CONFLICT", "The operation conflicts with the state."),
    "error_500": _Words(500, "SANDBOX::INTERNAL_ERROR", "An unexpected server error occurred."),
    "error_503": _UNAVAILABLE,
    "made_503": _UNAVAILABLE,
    "late": _Words(504, "GATEWAY_TIMEOUT", "The upstream did not answer in time."),
}


def refusal(fault: Fault, call: Call) -> Response:
    """Say a fault as the server, or a gateway before it, would."""
    words = _FAULTS[fault.fault]
    if fault.fault == "not_found" and call.op in ("snapshot_get", "snapshot_destroy"):
        words = _NO_SNAPSHOT
    headers = {"Retry-After": str(fault.retry_after)} if words.waits else {}
    return ApiError(words.status, words.code, words.message, headers).response()


def sandbox_not_found(instance_id: str) -> ApiError:
    """Say that there is no such sandbox."""
    return ApiError(404, "DOCKER::SANDBOX_NOT_FOUND", f"Sandbox {instance_id} not found.")


def snapshot_not_found(snapshot_id: str) -> ApiError:
    """Say that there is no such snapshot."""
    return ApiError(404, "SNAPSHOT::NOT_FOUND", f"Snapshot {snapshot_id} not found")


def invalid(message: str) -> ApiError:
    """Say that a parameter cannot be."""
    return ApiError(400, "SANDBOX::INVALID_PARAMETER", message)
