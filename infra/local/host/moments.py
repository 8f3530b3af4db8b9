"""Moments as text."""

from __future__ import annotations

from datetime import UTC, datetime


def rfc3339(epoch_ms: int) -> str:
    """Return a moment as RFC 3339 in UTC with milliseconds."""
    moment = datetime.fromtimestamp(epoch_ms / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
