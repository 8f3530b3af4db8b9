"""Queue worker: look at the sandboxes messages name."""

from __future__ import annotations

from functions.edge import wiring
from functions.edge.worker import looks


def look(sandbox_id: str) -> None:
    """Move one sandbox as far as it can go now."""
    wiring.router().advance(sandbox_id)


handler = looks(look)
