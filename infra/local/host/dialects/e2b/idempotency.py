"""Idempotency keys of E2B's create: one key, one body, one sandbox.

Facts: the SDK 2.61.0 and later (header Idempotency-Key, the three error codes). E2B publishes
neither how long keys are kept nor the statuses: here as long as the host lives, and 409.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from infra.local.host.dialects.e2b.errors import ApiError

_KEY = re.compile(r"[a-z0-9-]{1,255}\Z")


@dataclass(slots=True)
class _Kept:
    digest: bytes
    answer: dict[str, Any] | None = None


class Keys:
    """The keys in use, per account."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], _Kept] = {}

    def begin(self, account: str, key: str, body: Mapping[str, Any]) -> dict[str, Any] | None:
        """Claim a key for a body; return the first answer when it was given already."""
        if not _KEY.match(key):
            raise ApiError(400, "Idempotency-Key must be 1 to 255 characters of [a-z0-9-]")
        digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).digest()
        kept = self._kept.get((account, key))
        if kept is None:
            self._kept[account, key] = _Kept(digest)
            return None
        if kept.digest != digest:
            raise ApiError(
                409,
                "the idempotency key was used with another request",
                "idempotency_request_mismatch",
                {"Should-Retry": "false"},
            )
        if kept.answer is None:
            raise ApiError(
                409,
                "a request with this idempotency key is in progress",
                "idempotency_in_progress",
                {"Should-Retry": "true"},
            )
        return kept.answer

    def finish(self, account: str, key: str, answer: dict[str, Any]) -> None:
        """Keep the answer for repeats."""
        self._kept[account, key].answer = answer

    def release(self, account: str, key: str) -> None:
        """Forget a key whose request failed: nothing was made under it."""
        self._kept.pop((account, key), None)
