"""The table's stream: a guard has expired, so look at its record, whoever else forgot it."""

from __future__ import annotations

from functions.edge import wiring
from functions.edge.expiry import looks_at_expired
from functions.edge.log import log


def look(record_id: str) -> None:
    """Move one record as far as it can go now, without a queue in between."""
    if not wiring.router().guard(record_id):
        log().error("stuck", extra={"record_id": record_id})  # unreadable, and set aside


handler = looks_at_expired(look)
