"""E2B's names and limits that a profile cannot say as data.

Facts: the official Python SDK e2b 2.63.0 (retry.py, envd/versions.py, sandbox_domains.py).
"""

from __future__ import annotations

import re
from typing import Any

from sandbox_router.model.failure import ProtocolBroken, Rejected

DOMAIN = "e2b.app"
"""Where sandboxes are reached when E2B does not say."""

STDIN_CLOSES = (0, 5, 2)
"""The version of envd, E2B's agent, that learnt to end a command's input."""

RAW_BODY = (0, 5, 7)
"""The version of envd that learnt uploads which are no forms."""

_ID = re.compile(r"[a-z0-9]([a-z0-9-]{0,55}[a-z0-9])?")  # `49983-<id>` is one DNS label
_IDENTITY = re.compile(r"[a-z0-9-]{1,255}")
_CAPTURE = re.compile(r"([a-z0-9_-]{1,100}/)?[a-z0-9_-]{1,100}(:[a-z0-9_.-]{1,100})?")
_DOMAIN = re.compile(r"[a-z0-9.-]{1,200}")
_VERSION = re.compile(r"v?(\d{1,4})\.(\d{1,4})\.(\d{1,4}).*")


def identity(text: str) -> str:
    """An attempt's identity as an Idempotency-Key; raises Rejected when E2B would not take it."""
    if _IDENTITY.fullmatch(text):
        return text
    raise Rejected("The attempt's identity is no E2B idempotency key")


def instance_id(value: Any) -> str:
    """An id that is safe in a URL's path and host; raises ProtocolBroken."""
    if isinstance(value, str) and _ID.fullmatch(value):
        return value
    raise ProtocolBroken


def capture_id(value: Any) -> str:
    """A snapshot's id, `team/name:tag` or `id:tag`; raises ProtocolBroken."""
    if isinstance(value, str) and _CAPTURE.fullmatch(value):
        return value
    raise ProtocolBroken


def domain(value: str) -> str:
    """A domain that is safe in a URL; raises ProtocolBroken. Whether it is E2B's is for `hosts`."""
    if _DOMAIN.fullmatch(value):
        return value
    raise ProtocolBroken


def agent_version(text: str) -> tuple[int, ...]:
    """A version of envd as numbers; one that cannot be read counts as new."""
    match = _VERSION.fullmatch(text)
    return tuple(map(int, match.groups())) if match else (99,)
