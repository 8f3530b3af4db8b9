"""A failure as an RFC 9457 problem document: the one shape of every error answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .failure import Failure

TYPE_BASE = "https://sandbox-router.dev/problems/"


def problem(
    failure: Failure, request_id: str, attempts: Sequence[dict[str, Any]] | None = None
) -> dict[str, Any]:
    """The document of `failure`; `attempts` as the sandbox's view shows them."""
    document: dict[str, Any] = {
        "type": TYPE_BASE + failure.code.replace("_", "-"),
        "title": failure.title,
        "status": failure.status,
        "detail": failure.detail,
        "code": failure.code,
        "class": str(failure.klass),
        "retryable": failure.retryable,
        "outcome": str(failure.effect),
        "request_id": request_id,
    }
    if attempts is not None:
        document["attempts"] = list(attempts)
    if failure.fields:
        document["field_errors"] = [
            {"path": path, "reason": reason} for path, reason in failure.fields
        ]
    return document
