"""The queues on SQS: standard ones, since FIFO takes no delay of a single message."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from sandbox_router.model.failure import StoreBusy

from . import errors

MAX_DELAY_SECONDS = 900
"""SQS's own limit of DelaySeconds (API reference, SendMessage)."""


class SqsQueue:
    """`ports.Queue`: a message is `{"sandbox_id": ...}`, whatever record that is, and
    nothing else, ever.

    urls: queue name to queue URL. The client may retry: a message sent twice is one look more.
    """

    def __init__(self, client: Any, urls: Mapping[str, str]) -> None:
        self._client, self._urls = client, dict(urls)

    def send(self, queue: str, record_id: str, delay_seconds: float = 0) -> None:
        if not delay_seconds <= MAX_DELAY_SECONDS:
            raise ValueError(f"a delay is at most {MAX_DELAY_SECONDS} seconds")
        # Whole seconds, rounded up: a look that comes early would miss its deadline.
        delay = max(0, math.ceil(delay_seconds))
        _send(self._client, self._urls[queue], {"sandbox_id": record_id}, delay)


class SqsLetters:
    """`ports.DeadLetters` on the queue for what other systems sent."""

    def __init__(self, client: Any, url: str) -> None:
        self._client, self._url = client, url

    def add(self, letter: Mapping[str, Any]) -> None:
        _send(self._client, self._url, letter, 0)


def _send(client: Any, url: str, body: Mapping[str, Any], delay: int) -> None:
    try:
        client.send_message(QueueUrl=url, MessageBody=json.dumps(body), DelaySeconds=delay)
    except Exception as error:
        if errors.meaning(error) in ("broken", "invalid"):
            errors.note("sqs", error)
        raise StoreBusy from error
