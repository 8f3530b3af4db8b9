"""Audit entries are the outbox: what other systems are told of them, as events. Pure.

An entry says what happened in our own words only, so an event holds no value of a client's.
"""

from __future__ import annotations

from base64 import b32encode
from hashlib import sha256
from typing import Any

from ..model.event import Event
from ..model.view import timestamp
from ..store import Logged

STATE, FAILOVER = "sandbox.state.changed", "sandbox.failover"


def event_of(logged: Logged) -> Event | None:
    """The event of an audit entry, the same at every call; None where it is nobody else's
    business.
    """
    entry = logged.entry
    more: dict[str, Any]
    if entry.event in ("created", "state"):
        kind = STATE
        more = {"state": entry.state, "previous_state": entry.was, "reason": entry.reason}
    elif entry.instead_of not in (None, entry.pool_id):
        kind = FAILOVER
        more = {
            "attempt": entry.attempt,
            "pool_id": entry.pool_id,
            "previous_pool_id": entry.instead_of,
            "reason": entry.reason,
        }
    else:
        return None
    detail = {
        "event_id": event_id(logged),
        "sandbox_id": logged.sandbox_id,
        "tenant": logged.tenant,
        "occurred_at": timestamp(entry.at),
        **({} if entry.request_id is None else {"caused_by": entry.request_id}),
        **more,
    }
    return Event(detail["event_id"], kind, entry.at, detail)


def event_id(logged: Logged) -> str:
    """`evt-` and 26 lower-case base32 characters, from the entry's own key."""
    digest = sha256(logged.key.encode()).digest()
    return "evt-" + b32encode(digest).decode().lower()[:26]
