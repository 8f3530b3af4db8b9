"""A batch of the table's stream, as Lambda gets it.

Facts: "Process DynamoDB records with Lambda" and the shape of its events (docs.aws.amazon.com).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sandbox_router.model.failure import Internal
from sandbox_router.table import Item

from .values import decoded


def arrivals(event: Mapping[str, Any]) -> list[tuple[str, Item]]:
    """(sequence number, item) of what is new, in the stream's order.

    An image that cannot be read is an item with nothing but its key.
    """
    found = []
    for record in event.get("Records", ()):
        change = record.get("dynamodb", {})
        if record.get("eventName") == "INSERT":
            found.append((str(change["SequenceNumber"]), _item(change)))
    return found


def _item(change: Mapping[str, Any]) -> Item:
    for image in (change.get("NewImage"), change.get("Keys")):
        try:
            return decoded(image or {})
        except (TypeError, ValueError, AttributeError, Internal):
            continue
    return {}
