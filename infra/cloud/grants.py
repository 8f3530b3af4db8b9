"""What the catalog's grants mean in IAM's words: one role per function, nothing by wildcard.

A statement names what it is about by a word (`table`, `queue.create`, ...); the stacks know the
ARNs. Keys of the table have prefixes (`sandbox_router.store`), so a grant can end at one: only the
authorizer sees API keys, and no function of a stack can write one. Keys of objects have prefixes
too (`sandbox_router.session.transfers`); a URL can do what the role of its signer may.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from functions.catalog import Grant

LEADING = "dynamodb:LeadingKeys"
RECORDS = ("SBX#*", "SNAP#*", "LOG#*", "IDEM#*", "GUARD#*", "POOL#*")
KEYS = ("KEY#*",)


@dataclass(frozen=True)
class Statement:
    """Allow these actions on these things, where a key of the table begins as said."""

    actions: tuple[str, ...]
    about: tuple[str, ...]
    leading: tuple[str, ...] = ()

    @property
    def conditions(self) -> dict[str, Any] | None:
        """IAM's condition, if there is one."""
        if not self.leading:
            return None
        return {"ForAllValues:StringLike": {LEADING: list(self.leading)}}


STATEMENTS: dict[Grant, tuple[Statement, ...]] = {
    Grant.KEYS: (Statement(("dynamodb:GetItem",), ("table",), KEYS),),
    Grant.READ: (Statement(("dynamodb:GetItem", "dynamodb:Query"), ("table",), RECORDS),),
    Grant.WRITE: (
        Statement(
            (
                "dynamodb:ConditionCheckItem",
                "dynamodb:DeleteItem",
                "dynamodb:PutItem",
                "dynamodb:UpdateItem",
            ),
            ("table",),
            RECORDS,
        ),
    ),
    Grant.LETTERS: (Statement(("sqs:SendMessage",), ("queue.letters",)),),
    Grant.LIST: (Statement(("dynamodb:Query",), ("index.tenant",)),),
    Grant.DUE: (Statement(("dynamodb:Query",), ("index.due",)),),
    Grant.SEND: (Statement(("sqs:SendMessage",), ("queue.create", "queue.teardown")),),
    Grant.DOWNLOAD: (
        Statement(("s3:AbortMultipartUpload", "s3:GetObject", "s3:PutObject"), ("objects.down",)),
    ),
    Grant.UPLOAD: (Statement(("s3:PutObject",), ("objects.up",)),),
    Grant.TAKE: (
        Statement(("s3:DeleteObject", "s3:GetObject"), ("objects.up",)),
        Statement(("s3:GetObject", "s3:PutObject"), ("objects.done",)),
        # Without it S3 answers 403 for what is not there, as for what may not be read.
        Statement(("s3:ListBucket",), ("bucket",)),
    ),
    Grant.PUBLISH: (Statement(("events:PutEvents",), ("bus",)),),
    Grant.PEPPER: (Statement(("secretsmanager:GetSecretValue",), ("secret.pepper",)),),
    Grant.SEAL: (Statement(("secretsmanager:GetSecretValue",), ("secret.vault",)),),
    Grant.POOLS: (Statement(("secretsmanager:GetSecretValue",), ("secret.pools",)),),
}
CONSUME = (
    "sqs:ChangeMessageVisibility",
    "sqs:DeleteMessage",
    "sqs:GetQueueAttributes",
    "sqs:ReceiveMessage",
)
STREAM = ("dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator")
STREAMS = ("dynamodb:ListStreams",)
LOSES = ("sqs:SendMessage",)
LOGS = ("logs:CreateLogStream", "logs:PutLogEvents")
TRACES = ("xray:PutTelemetryRecords", "xray:PutTraceSegments")
ANYWHERE = frozenset({*STREAMS, *TRACES})
"""Actions that have no resource to name."""


def statements(grants: Iterable[Grant]) -> list[Statement]:
    """The statements of a function, in one order everywhere."""
    return [one for grant in sorted(set(grants)) for one in STATEMENTS[grant]]
