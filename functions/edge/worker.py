"""The shell of queue workers: a batch in, the messages that failed out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from aws_lambda_powertools.utilities.batch import (
    BatchProcessor,
    EventType,
    process_partial_response,
)
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord

from .fields import RECORD_ID
from .log import log, unexpected


class NoRecord(Exception):
    """A message names none; it ends in the dead-letter queue, where a person can look at it."""


Look = Callable[[str], object]
Handler = Callable[[dict[str, Any], Any], Mapping[str, Any]]


def looks(look: Look) -> Handler:
    """A Lambda handler that looks at the record of each message, each answered for itself: what
    fails is listed, and only that comes again.
    """

    def one(record: SQSRecord) -> None:
        if (record_id := named(record.body)) is None:
            log().error("message without a record", extra={"message_id": record.message_id})
            raise NoRecord
        try:
            look(record_id)
        except Exception as error:
            unexpected(error, record_id=record_id, message_id=record.message_id)
            raise

    def handler(event: dict[str, Any], context: Any) -> Mapping[str, Any]:
        processor = BatchProcessor(EventType.SQS, raise_on_entire_batch_failure=False)
        return process_partial_response(event, one, processor, context)

    return handler


def named(body: str) -> str | None:
    """The record a message is about: nothing else in it counts."""
    try:
        found = json.loads(body)["sandbox_id"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return found if isinstance(found, str) and re.fullmatch(RECORD_ID, found) else None
