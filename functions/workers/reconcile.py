"""Every five minutes: what every pool runs, compared with what we know."""

from __future__ import annotations

from typing import Any

from functions.edge import wiring
from functions.edge.log import log


def reconcile() -> int:
    """One pass over every pool; how many orphans ended."""
    destroyed = 0
    for report in wiring.router().reconcile():
        destroyed += len(report.destroyed)
        level = log().info if report.complete and not report.failed else log().error
        level(
            "reconciled",
            extra={
                "pool_id": report.pool_id,
                "verdicts": report.verdicts,
                "destroyed": report.destroyed,
                "reported": report.reported[:100],
                "complete": report.complete,
                "endless": report.endless,
                "failed": report.failed,
            },
        )
    return destroyed


def handler(event: Any, context: Any) -> dict[str, int]:
    """One pass."""
    return {"destroyed": reconcile()}
