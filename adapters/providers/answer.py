"""Judging a provider's answer: the failure table, strict JSON, Retry-After."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any

from sandbox_router.model import failure as fail
from sandbox_router.model.failure import ProtocolBroken, ProviderFailure, Unknown

DEPTH_LIMIT = 32

Rows = Mapping[tuple[int | None, str | None], type[ProviderFailure]]

DEFAULTS: Rows = {
    (401, None): fail.BrokenPool,
    (402, None): fail.Quota,
    (403, None): fail.Permission,
    (404, None): fail.Gone,
    (408, None): Unknown,
    (409, None): fail.Conflicted,
    (410, None): fail.Gone,
    (429, None): fail.RateLimited,
}


@dataclass(frozen=True)
class Verdicts:
    """The table (status, vendor code) -> failure class of one kind of call.

    Looked up as (status, code), (None, code), (status, None), here and then in `DEFAULTS`; then
    3xx is ProtocolBroken, another 4xx Rejected, another 5xx Unknown. `code` reads the vendor's
    code out of an error body, or makes one up from it.
    """

    rows: Rows = field(default_factory=dict)
    code: Callable[[int, Mapping[str, Any]], str | None] = lambda status, body: None

    def classify(self, status: int, code: str | None) -> type[ProviderFailure]:
        """The failure class of an answer."""
        keys = [(status, code), (None, code)] if code else []
        for key in (*keys, (status, None)):
            for rows in (self.rows, DEFAULTS):
                if key in rows:
                    return rows[key]
        if status < 400:
            return ProtocolBroken
        return fail.Rejected if status < 500 else Unknown

    def failure(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderFailure:
        """The failure an answer means, with its Retry-After."""
        try:
            code = self.code(status, parse(body, dict))
        except ProtocolBroken:
            code = None
        kind = self.classify(status, code)
        wait = retry_after(headers.get("retry-after")) if kind.temporary else None
        return kind(f"{kind.title} (status {status})", retry_after=wait)


@dataclass(frozen=True)
class Answer:
    """A whole answer with an expected status."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)

    def object(self) -> dict[str, Any]:
        """The body as a JSON object; raises ProtocolBroken."""
        found: dict[str, Any] = parse(self.body, dict)
        return found

    def array(self) -> list[Any]:
        """The body as a JSON array; raises ProtocolBroken."""
        found: list[Any] = parse(self.body, list)
        return found


def parse(body: bytes, container: type) -> Any:
    """JSON that is this container, sound and not too deep; raises ProtocolBroken."""
    try:
        found = json.loads(body, parse_constant=_refuse)
        if isinstance(found, container) and _sound(found):
            return found
    except (ValueError, RecursionError):
        pass
    raise ProtocolBroken


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def _sound(root: Any) -> bool:
    """Not too deep, and no text that cannot be written as UTF-8: the store would choke on it."""
    level = [root]
    for _ in range(DEPTH_LIMIT):
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                below.extend(item)
                below.extend(item.values())
            elif isinstance(item, list):
                below.extend(item)
            elif isinstance(item, str):
                item.encode()
        level = below
        if not level:
            return True
    return False


def retry_after(value: str | None) -> int | None:
    """Seconds from a Retry-After header (a number or a date), within 1..600; None if unreadable."""
    if value is None:
        return None
    text = value.strip()
    try:
        if text.isascii() and text.isdecimal():
            seconds = float(text[:10])
        else:
            when = parsedate_to_datetime(text)
            seconds = when.replace(tzinfo=when.tzinfo or UTC).timestamp() - time.time()
    except (ValueError, OverflowError):
        return None
    return round(min(max(seconds, 1.0), 600.0))
