"""The bus on EventBridge."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sandbox_router.model.event import SOURCE, Event
from sandbox_router.model.failure import StoreBusy

from . import errors

MAX_ENTRIES, MAX_BYTES = 10, 256 * 1024
"""Of one PutEvents call (API reference, PutEvents)."""
TRIES = 3
_TIME_BYTES = 14  # what an entry's `Time` counts for
Entry = dict[str, Any]


class EventBridge:
    """`ports.Bus` on one event bus. EventBridge keeps no order, so the order is that of sending.

    PutEvents may take some entries of a call and refuse others: those alone are sent again, and
    what is left after a few tries is StoreBusy.
    """

    def __init__(self, client: Any, bus: str) -> None:
        self._client, self._bus = client, bus

    def publish(self, events: Sequence[Event]) -> None:
        for batch in _batches([self._entry(event) for event in events]):
            left = batch
            for _ in range(TRIES):
                left = self._refused(left)
                if not left:
                    break
            else:
                raise StoreBusy

    def _entry(self, event: Event) -> Entry:
        return {
            "Time": datetime.fromtimestamp(event.at / 1000, UTC),
            "Source": SOURCE,
            "DetailType": event.type,
            "Detail": json.dumps(event.detail, separators=(",", ":")),
            "EventBusName": self._bus,
        }

    def _refused(self, entries: list[Entry]) -> list[Entry]:
        try:
            answer = self._client.put_events(Entries=entries)
        except Exception as error:  # the client has repeated what made sense
            if errors.meaning(error) in ("broken", "invalid"):
                errors.note("events", error)
            raise StoreBusy from error
        pairs = zip(entries, answer["Entries"], strict=True)
        return [entry for entry, result in pairs if result.get("ErrorCode")]


def _batches(entries: list[Entry]) -> Iterator[list[Entry]]:
    """As many entries as one call takes."""
    batch: list[Entry] = []
    size = 0
    for entry in entries:
        more = _bytes(entry)
        if batch and (len(batch) == MAX_ENTRIES or size + more > MAX_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(entry)
        size += more
    if batch:
        yield batch


def _bytes(entry: Mapping[str, Any]) -> int:
    texts = (entry["Source"], entry["DetailType"], entry["Detail"])
    return _TIME_BYTES + sum(len(text.encode()) for text in texts)
