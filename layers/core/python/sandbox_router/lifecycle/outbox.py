"""Audit entries are the outbox: other systems are told of them in events, at least once, in order.

An entry says what happened in our own words only, so an event holds no value of a client's. Which
entry becomes which event is pure, the event's id included: whoever is told twice can see it.
"""

from __future__ import annotations

from base64 import b32encode
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any

from ..model.event import Event
from ..model.sandbox import Sandbox
from ..model.view import timestamp
from ..ports import Bus, DeadLetters
from ..store import ORPHAN, OUTBOX, Logged, Store, kind_of, logged

STATE, FAILOVER = "sandbox.state.changed", "sandbox.failover"
ORPHAN_FOUND = "sandbox.orphan.found"

Changes = Callable[[str | None], tuple[Sequence[Mapping[str, Any]], str | None]]
"""Items stored after a place, in order, and the place behind them; None is the beginning."""


class Outbox:
    """Follows the changes of a table that has no stream of its own. One per deployment."""

    def __init__(self, changes: Changes, store: Store, bus: Bus, letters: DeadLetters) -> None:
        self._changes, self._store, self._bus, self._letters = changes, store, bus, letters
        self._place: str | None = None

    def drain(self) -> int:
        """Tell everything that is new; how many events. What fails is told again next time."""
        place, told = self._place or self._kept(), 0
        while True:
            items, following = self._changes(place)
            if not items:
                return told
            events = events_of(items, self._letters)
            if events:
                self._bus.publish(events)
                # Only now: a place kept too early would lose events, one kept late repeats some.
                # Without events it is not kept, since keeping it is a change itself.
                self._store.put(OUTBOX, {"place": following})
            place = self._place = following
            told += len(events)

    def _kept(self) -> str | None:
        item = self._store.get(OUTBOX)
        return None if item is None else str(item["place"])


def events_of(items: Sequence[Mapping[str, Any]], letters: DeadLetters) -> list[Event]:
    """The events of stored items; half an entry is a dead letter, and holds up no other."""
    found = []
    for item in items:
        try:
            entry = logged(item)
            event = None if entry is None else event_of(entry)
        except (KeyError, TypeError, ValueError):
            letters.add({"source": "outbox", "key": [item.get("pk"), item.get("sk")]})
            continue
        if event is not None:
            found.append(event)
    return found


def event_of(log: Logged) -> Event | None:
    """The event of an audit entry; None where it is nobody else's business, as what happens to a
    snapshot is.
    """
    entry = log.entry
    if kind_of(log.record_id) is not Sandbox:
        return None
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
    elif entry.event == ORPHAN:
        kind = ORPHAN_FOUND
        more = {"pool_id": entry.pool_id, "instance_id": entry.reason}
    else:
        return None
    detail = {
        "event_id": event_id(log),
        "sandbox_id": log.record_id,
        "tenant": log.tenant,
        "occurred_at": timestamp(entry.at),
        **({} if entry.request_id is None else {"caused_by": entry.request_id}),
        **more,
    }
    return Event(detail["event_id"], kind, entry.at, detail)


def event_id(log: Logged) -> str:
    """`evt-` and 26 lower-case base32 characters, from the entry's own key."""
    digest = sha256(log.key.encode()).digest()
    return "evt-" + b32encode(digest).decode().lower()[:26]
