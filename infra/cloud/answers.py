"""The gateway's own answers, in the shape every other error has.

What a gateway says itself (no such path, no key, too large) is a problem document made from the
same failures as the functions' and the local gateway's. A template may use the request's id.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from sandbox_router.model.failure import (
    Failure,
    Forbidden,
    Internal,
    Invalid,
    NotFound,
    StoreBusy,
    TooLarge,
    Unauthenticated,
    Unknown,
    WrongMediaType,
)
from sandbox_router.model.failure_class import Effect
from sandbox_router.model.problem import problem

REQUEST_ID = "$context.requestId"
HEADERS = {
    "Content-Type": "'application/problem+json'",
    "X-Request-Id": "context.requestId",
    "Cache-Control": "'no-store'",
}


@dataclass(frozen=True)
class GatewayAnswer:
    """One response type of API Gateway: its status, its document, more headers."""

    type: str
    status: int
    body: str
    headers: dict[str, str]


def _answer(
    name: str, failure: Failure, status: int | None = None, outcome: Effect | None = None
) -> GatewayAnswer:
    document = problem(failure, REQUEST_ID)
    document |= {} if status is None else {"status": status}
    document |= {} if outcome is None else {"outcome": str(outcome)}
    headers = dict(HEADERS)
    if isinstance(failure, Unauthenticated):
        headers["WWW-Authenticate"] = "'Bearer'"
    if failure.retry_after is not None:
        headers["Retry-After"] = f"'{failure.retry_after:.0f}'"
    return GatewayAnswer(name, document["status"], json.dumps(document), headers)


def answers() -> list[GatewayAnswer]:
    """Every answer API Gateway can give without a function."""
    busy = StoreBusy(retry_after=1)
    return [
        # The gateway's word for a path or method it does not have, in front of any authorizer.
        _answer("MISSING_AUTHENTICATION_TOKEN", NotFound()),
        _answer("RESOURCE_NOT_FOUND", NotFound()),
        _answer("UNAUTHORIZED", Unauthenticated()),
        _answer("ACCESS_DENIED", Forbidden()),
        _answer("REQUEST_TOO_LARGE", TooLarge("The body is over 10 MB")),
        _answer("UNSUPPORTED_MEDIA_TYPE", WrongMediaType()),
        _answer("THROTTLED", busy, 429),
        _answer("QUOTA_EXCEEDED", busy, 429),
        # It raised: nobody could look the key up, and nothing else has happened.
        _answer("AUTHORIZER_FAILURE", busy, outcome=Effect.NONE),
        _answer("AUTHORIZER_CONFIGURATION_ERROR", Internal()),
        # A function was called and did not answer: what it has done nobody knows.
        _answer("INTEGRATION_FAILURE", Internal(), 502, Effect.UNKNOWN),
        _answer("INTEGRATION_TIMEOUT", Unknown("The answer did not come in time"), 504),
        _answer("DEFAULT_4XX", Invalid()),
        _answer("DEFAULT_5XX", Internal(), 502, Effect.UNKNOWN),  # mostly a function that failed
    ]
