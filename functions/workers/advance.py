"""Queue worker: look at the sandboxes messages name."""

from __future__ import annotations

from functions.edge import wiring
from functions.edge.log import log
from functions.edge.worker import looks


def look(sandbox_id: str) -> None:
    """Move one sandbox as far as it can go now."""
    if not wiring.router().advance(sandbox_id):
        log().error("stuck", extra={"sandbox_id": sandbox_id})  # unreadable, and set aside


handler = looks(look)
