"""The table's stream: a guard has expired, so look at its sandbox, whoever else forgot it."""

from __future__ import annotations

from functions.edge import wiring
from functions.edge.expiry import looks_at_expired


def look(sandbox_id: str) -> None:
    """Move one sandbox as far as it can go now, without a queue in between."""
    wiring.router().advance(sandbox_id)


handler = looks_at_expired(look)
