"""Runs the real authorizer function as API Gateway would, and remembers whom it let in."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Any

from infra.local.proxy_event import Call, Target, authorizer_event, method_arn
from infra.local.routes import Context, Handler

CACHE_SECONDS = 60.0
TIMEOUT_SECONDS = 10.0


class Denied(Exception):
    """No valid key: the caller learns nothing more, whatever the cause."""


class Authorizer:
    """A REQUEST authorizer on the Authorization header. Refusals are not remembered."""

    def __init__(self, handler: Handler, cache_seconds: float = CACHE_SECONDS) -> None:
        self._handler = handler
        self._seconds = cache_seconds
        self._kept: dict[bytes, tuple[float, Mapping[str, Any]]] = {}

    def admit(self, call: Call, target: Target) -> Mapping[str, Any]:
        """The authorizer's context for the function; raises Denied."""
        keys = [value for name, value in call.headers if name.lower() == "authorization"]
        if len(keys) != 1 or not keys[0]:
            raise Denied
        digest = hashlib.sha256(keys[0].encode()).digest()
        until, answer = self._kept.get(digest, (0.0, {}))
        if until <= time.monotonic():
            answer = self._ask(call, target)
            self._remember(digest, answer)
        if not _allows(answer, method_arn(call.method, call.path)):
            raise Denied
        context = answer.get("context") or {}
        return {**context, "principalId": answer.get("principalId")}

    def _ask(self, call: Call, target: Target) -> Mapping[str, Any]:
        event = authorizer_event(call, target, datetime.now(UTC))
        try:
            answer = self._handler(event, Context("authorize", TIMEOUT_SECONDS))
        except Exception as error:
            if str(error) == "Unauthorized":  # the word API Gateway turns into a 401
                raise Denied from None
            raise
        if not isinstance(answer, Mapping):
            raise Denied
        return answer

    def _remember(self, digest: bytes, answer: Mapping[str, Any]) -> None:
        now = time.monotonic()
        self._kept = {key: kept for key, kept in self._kept.items() if kept[0] > now}
        if any(s.get("Effect") == "Allow" for s in _statements(answer)):
            self._kept[digest] = (now + self._seconds, answer)


def _statements(answer: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found = (answer.get("policyDocument") or {}).get("Statement") or []
    return [found] if isinstance(found, Mapping) else list(found)


def _allows(answer: Mapping[str, Any], arn: str) -> bool:
    """Does the policy allow this method, and nothing deny it?"""
    effects = {s.get("Effect") for s in _statements(answer) if _names(s.get("Resource"), arn)}
    return effects == {"Allow"}


def _names(resource: Any, arn: str) -> bool:
    patterns = [resource] if isinstance(resource, str) else list(resource or ())
    return any(fnmatchcase(arn, pattern) for pattern in patterns)
