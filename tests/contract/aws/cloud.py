"""AWS in this process: moto behind the real clients, one call at a time."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from moto import mock_aws

from adapters.aws.objects import S3Objects
from adapters.aws.session import Session
from adapters.aws.table import DynamoTable
from adapters.items import SORTS
from sandbox_router.table import INDEXES, PK, SK

REGION = "eu-central-1"
TABLE, BUCKET = "router", "router-objects"
_LETTER = {str: "S", int: "N"}


@contextmanager
def aws() -> Iterator[Session]:
    """An empty account, and the session every client of a test comes from."""
    with mock_aws():
        yield Session(REGION)


class Serial:
    """A client whose calls wait for each other: DynamoDB's are atomic, but moto's transactions are
    made of steps that threads may come between.
    """

    def __init__(self, client: Any) -> None:
        self._client, self._lock = client, threading.Lock()

    def __getattr__(self, operation: str) -> Any:
        call = getattr(self._client, operation)

        def alone(**request: Any) -> Any:
            with self._lock:
                return call(**request)

        return alone


def make_table(client: Any) -> None:
    """The table as the driver wants it: its keys, its sparse indexes, its stream."""
    hashes = {hashed: str for hashed, _ in INDEXES.values()}
    attributes = {PK: str, SK: str, **hashes, **SORTS}
    client.create_table(
        TableName=TABLE,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[
            {"AttributeName": name, "AttributeType": _LETTER[kind]}
            for name, kind in attributes.items()
        ],
        KeySchema=_schema(PK, SK),
        GlobalSecondaryIndexes=[
            {
                "IndexName": name,
                "KeySchema": _schema(hashed, sorts),
                "Projection": {"ProjectionType": "ALL"},
            }
            for name, (hashed, sorts) in INDEXES.items()
        ],
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
    )


def _schema(hashed: str, sorts: str) -> list[dict[str, str]]:
    return [
        {"AttributeName": hashed, "KeyType": "HASH"},
        {"AttributeName": sorts, "KeyType": "RANGE"},
    ]


_names = itertools.count()


def made_secret(client: Any, value: str | bytes) -> str:
    """The ARN of a new secret."""
    kind = "SecretString" if isinstance(value, str) else "SecretBinary"
    arn: str = client.create_secret(Name=f"secret-{next(_names)}", **{kind: value})["ARN"]
    return arn


@contextmanager
def table_of(session: Session) -> Iterator[DynamoTable]:
    """The driver over a table made now and gone at the end."""
    client = session.made("dynamodb")
    make_table(client)
    yield DynamoTable(Serial(client), TABLE)
    client.delete_table(TableName=TABLE)


@contextmanager
def bucket_of(session: Session) -> Iterator[S3Objects]:
    """The driver over a bucket made now; nothing may be left half-sent in it at the end."""
    client = session.made("s3")
    where = {"LocationConstraint": REGION}
    client.create_bucket(Bucket=BUCKET, CreateBucketConfiguration=where)
    yield S3Objects(client, BUCKET)
    assert client.list_multipart_uploads(Bucket=BUCKET).get("Uploads", []) == []
    for one in client.list_objects_v2(Bucket=BUCKET).get("Contents", []):
        client.delete_object(Bucket=BUCKET, Key=one["Key"])
    client.delete_bucket(Bucket=BUCKET)
