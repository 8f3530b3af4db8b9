"""What a client can branch on when a call failed: which kind of failure, and its effect."""

from __future__ import annotations

from enum import StrEnum


class FailureClass(StrEnum):
    """The closed list of `class` values a client can branch on."""

    CAPACITY = "capacity"
    RATE_LIMITED = "rate_limited"
    QUOTA = "quota"
    REGION = "region"
    OUTAGE = "outage"
    UNSUPPORTED = "unsupported"
    INVALID = "invalid"
    PERMISSION = "permission"
    POLICY = "policy"
    CONFLICT = "conflict"
    NOT_FOUND = "not_found"
    UNKNOWN_OUTCOME = "unknown_outcome"
    INTERNAL = "internal"


class Effect(StrEnum):
    """May the requested effect have happened?"""

    NONE = "none"
    DONE = "done"
    UNKNOWN = "unknown"
