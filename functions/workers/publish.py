"""The table's stream: audit entries, told to the bus."""

from __future__ import annotations

from typing import Any

from functions.edge import wiring
from functions.edge.log import log, unexpected
from sandbox_router.lifecycle.outbox import events_of


def handler(event: Any, context: Any) -> dict[str, list[dict[str, str]]]:
    """Tell the events of a batch, in order; the whole batch comes again when that fails.

    An entry that cannot be read is a dead letter and fails nothing: a stream repeats what fails
    together with all that follows, so it would hold up every other sandbox.
    """
    batch = wiring.arrivals(event)
    outward = wiring.outward()
    try:
        events = events_of([item for _, item in batch], outward.letters)
        if events:
            outward.bus.publish(events)
    except Exception as error:
        unexpected(error, operation="publish")
        return {"batchItemFailures": [{"itemIdentifier": number} for number, _ in batch[:1]]}
    log().debug("published", extra={"events": len(events)})
    return {"batchItemFailures": []}
