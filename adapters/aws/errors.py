"""What a failed call to AWS means: surely nothing happened, or nobody knows.

Facts from the DynamoDB API reference and botocore's source (`httpsession.py`): a 5xx or a
connection that ends after sending leaves a write's outcome open; a connection that never came
about sent nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Literal

_LOG = logging.getLogger(__name__)

Meaning = Literal["condition", "cancelled", "contended", "lost", "invalid", "broken"]
"""condition, cancelled: see the response · contended: nothing happened, try again · lost: unknown ·
invalid: the request can never be accepted · broken: permission, configuration, a missing resource.
"""

CONTENDED = frozenset(
    {
        "ProvisionedThroughputExceeded",
        "ProvisionedThroughputExceededException",
        "ReplicatedWriteConflictException",
        "RequestLimitExceeded",
        "RequestTimeout",  # S3: a body that came too slowly
        "SlowDown",
        "Throttling",
        "ThrottlingError",
        "ThrottlingException",
        "TransactionConflict",
        "TransactionConflictException",
    }
)
_SPECIAL: Mapping[str, Meaning] = {
    "ConditionalCheckFailedException": "condition",
    "TransactionCanceledException": "cancelled",
    "ValidationException": "invalid",
    # It speaks of our own token: an earlier try of this very call is still being executed.
    "TransactionInProgressException": "lost",
}


def meaning(error: Exception) -> Meaning:
    """The meaning of what a boto3 client raised; other exceptions are raised again."""
    from botocore import exceptions as e  # type: ignore[import-untyped]

    if isinstance(error, e.ClientError):
        return _of_code(code(error), status(error))
    if isinstance(
        error, e.EndpointConnectionError | e.ConnectTimeoutError | e.ProxyConnectionError
    ):
        return "contended"
    if isinstance(error, e.HTTPClientError | e.ConnectionError | e.IncompleteReadError):
        return "lost"
    if isinstance(error, e.BotoCoreError):
        return "broken"  # credentials, parameters: nothing was sent
    raise error


def _of_code(code: str, status: int) -> Meaning:
    if code in CONTENDED:
        return "contended"
    return _SPECIAL.get(code, "lost" if status >= 500 else "broken")


def code(error: Exception) -> str:
    """The error's code, else the name of its class: never its text, which may quote values."""
    answer: Mapping[str, Any] = getattr(error, "response", None) or {}
    return str(answer.get("Error", {}).get("Code") or type(error).__name__)


def status(error: Exception) -> int:
    """The HTTP status of the answer, 0 without one."""
    answer: Mapping[str, Any] = getattr(error, "response", None) or {}
    return int(answer.get("ResponseMetadata", {}).get("HTTPStatusCode") or 0)


def reasons(error: Exception) -> Sequence[Mapping[str, Any]]:
    """Why a transaction was cancelled, one entry per write: `Code`, and `Item` where asked for."""
    answer: Mapping[str, Any] = getattr(error, "response", None) or {}
    found: Sequence[Mapping[str, Any]] = answer.get("CancellationReasons") or ()
    return found


def note(service: str, error: Exception) -> None:
    """Leave a trace of a fault an operator must mend."""
    _LOG.error("%s: %s", service, code(error))
