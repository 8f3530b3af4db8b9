"""The shell of the guard: items the table's expiry service removed, as the stream tells of them.

Facts: "Time to Live and DynamoDB Streams" (docs.aws.amazon.com): such a record is a REMOVE whose
`userIdentity` names the service. The mapping's filter lets nothing else through; a guard that we
removed ourselves, with its record's end, is no expiry.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from .fields import RECORD_ID
from .log import unexpected

PREFIX = "GUARD#"
SERVICE = {"type": "Service", "principalId": "dynamodb.amazonaws.com"}

Answer = dict[str, list[dict[str, str]]]


def looks_at_expired(look: Callable[[str], object]) -> Callable[[Mapping[str, Any], Any], Answer]:
    """A Lambda handler that looks at the record of every expired guard. All are looked at; the
    stream comes again from the first that failed, and a look may be repeated.
    """

    def handler(event: Mapping[str, Any], context: Any) -> Answer:
        failed = []
        for record in event.get("Records", ()):
            if (record_id := guarded(record)) is None:
                continue
            try:
                look(record_id)
            except Exception as error:
                unexpected(error, operation="guard", record_id=record_id)
                failed.append({"itemIdentifier": str(record["dynamodb"]["SequenceNumber"])})
        return {"batchItemFailures": failed}

    return handler


def guarded(record: Mapping[str, Any]) -> str | None:
    """The record whose guard expired, if that is what the record tells of."""
    if record.get("eventName") != "REMOVE" or record.get("userIdentity") != SERVICE:
        return None
    key = str(record.get("dynamodb", {}).get("Keys", {}).get("pk", {}).get("S", ""))
    record_id = key.removeprefix(PREFIX)
    named = key.startswith(PREFIX) and re.fullmatch(RECORD_ID, record_id)
    return record_id if named else None
