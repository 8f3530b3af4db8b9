"""A message of the local queue, as the queue's event the worker's function is called with."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

Handler = Callable[[dict[str, Any], Any], Mapping[str, Any]]


class Unanswered(Exception):
    """The function says that the message is to come again."""


def deliver(handler: Handler, record_id: str) -> None:
    """Call the function as its queue elsewhere does; raises Unanswered."""
    record = {
        "messageId": record_id,
        "receiptHandle": "",
        "body": json.dumps({"sandbox_id": record_id}),
        "attributes": {},
        "eventSource": "aws:sqs",
    }
    if handler({"Records": [record]}, None).get("batchItemFailures"):
        raise Unanswered
