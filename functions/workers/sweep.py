"""Every minute: a message for everything due, and another try for broken pools."""

from __future__ import annotations

from typing import Any

from functions.edge import wiring
from functions.edge.log import log


def sweep() -> int:
    """Send a message for everything due soon or overdue; how many."""
    return wiring.router().sweep()


def heal() -> None:
    """Ask pools whose credential was rejected to verify."""
    wiring.router().heal()


def handler(event: Any, context: Any) -> dict[str, int]:
    """Both, teardown first."""
    sent = sweep()
    heal()
    log().info("swept", extra={"sent": sent})
    return {"sent": sent}
