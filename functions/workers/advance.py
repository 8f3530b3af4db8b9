"""Queue worker: look at the records messages name."""

from __future__ import annotations

from functions.edge import wiring
from functions.edge.log import log
from functions.edge.worker import looks


def look(record_id: str) -> None:
    """Move one record as far as it can go now."""
    if not wiring.router().advance(record_id):
        log().error("stuck", extra={"record_id": record_id})  # unreadable, and set aside


handler = looks(look)
