"""One test per gap of ministack that we close, so that an upgrade says what it moved."""

from __future__ import annotations

import io
import json
import time
import uuid
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.cloud.e2e.deployment import Cloud
from tests.cloud.e2e.emulator import Emulator
from tests.local.acceptance.deployment import eventually

FUNCTION = """
import json, os, time, boto3

def handler(event, context):
    queue, failures = boto3.client("sqs"), []
    for record in event["Records"]:
        key = record["dynamodb"]["Keys"]["pk"]["S"] if "dynamodb" in record else record["body"]
        if key == "slow":
            time.sleep(4)
        if key == "poison":
            failures.append({"itemIdentifier": record["dynamodb"]["SequenceNumber"]})
            break
        who = record.get("userIdentity")
        told = json.dumps([key, record.get("eventName"), who])
        queue.send_message(QueueUrl=os.environ["QUEUE"], MessageBody=told)
    return {"batchItemFailures": failures}
"""
EXPIRY_SERVICE = {"type": "Service", "principalId": "dynamodb.amazonaws.com"}
ROLE = "arn:aws:iam::000000000000:role/any"


@dataclass(frozen=True)
class Rig:
    """A table whose stream a function tells to a queue, and that queue as a source too."""

    emulator: Emulator
    table: str
    told_url: str
    lost_url: str
    source_url: str

    def put(self, *keys: str, **more: Any) -> None:
        for key in keys:
            item = {"pk": {"S": key}, **more}
            self.emulator.client("dynamodb").put_item(TableName=self.table, Item=item)

    def hears(self, many: int) -> list[list[Any]]:
        """What the function said since the last look, once it is so many."""
        found: list[list[Any]] = []

        def enough() -> bool:
            found.extend(json.loads(message) for message in self._taken(self.told_url))
            return len(found) >= many

        eventually(enough, 15, every=0.1)
        return found

    def lost(self) -> list[str]:
        return self._taken(self.lost_url)

    def _taken(self, url: str) -> list[str]:
        sqs = self.emulator.client("sqs")
        found: list[str] = []
        while messages := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
            for message in messages:
                found.append(message["Body"])
                sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        return found


@pytest.fixture(scope="module")
def rig(cloud: Cloud) -> Iterator[Rig]:
    emulator, name = cloud.emulator, f"rig-{uuid.uuid4().hex[:8]}"
    client = emulator.client
    urls = [
        client("sqs").create_queue(QueueName=f"{name}-{each}")["QueueUrl"]
        for each in ("told", "lost", "source")
    ]
    arns = [_arn(emulator, url) for url in urls]
    table = client("dynamodb").create_table(
        TableName=name,
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
    )["TableDescription"]
    expiry = {"AttributeName": "ttl", "Enabled": True}
    client("dynamodb").update_time_to_live(TableName=name, TimeToLiveSpecification=expiry)
    client("lambda").create_function(
        FunctionName=name,
        Runtime="python3.11",
        Role=ROLE,
        Handler="index.handler",
        Code={"ZipFile": _zipped(FUNCTION)},
        Timeout=20,
        Environment={"Variables": {"QUEUE": urls[0]}},
    )
    client("lambda").create_event_source_mapping(
        FunctionName=name,
        EventSourceArn=table["LatestStreamArn"],
        StartingPosition="TRIM_HORIZON",
        BatchSize=10,
        MaximumRetryAttempts=1,
        BisectBatchOnFunctionError=True,
        FunctionResponseTypes=["ReportBatchItemFailures"],
        DestinationConfig={"OnFailure": {"Destination": arns[1]}},
    )
    client("lambda").create_event_source_mapping(FunctionName=name, EventSourceArn=arns[2])
    yield Rig(emulator, name, *urls)
    client("dynamodb").delete_table(TableName=name)
    client("lambda").delete_function(FunctionName=name)


def _arn(emulator: Emulator, url: str) -> str:
    answer = emulator.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
    return str(answer["Attributes"]["QueueArn"])


def _zipped(code: str) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("index.py", code)
    return data.getvalue()


def test_the_deployed_table_expires_items_and_keeps_backups(cloud: Cloud) -> None:
    """CloudFormation here drops both without a word; `fixups` sets them."""
    dynamodb = cloud.emulator.client("dynamodb")
    expiry = dynamodb.describe_time_to_live(TableName=cloud.table)["TimeToLiveDescription"]
    assert expiry == {"TimeToLiveStatus": "ENABLED", "AttributeName": "ttl"}
    backups = dynamodb.describe_continuous_backups(TableName=cloud.table)
    recovery = backups["ContinuousBackupsDescription"]["PointInTimeRecoveryDescription"]
    assert recovery["PointInTimeRecoveryStatus"] == "ENABLED"


def test_an_expired_item_goes_within_seconds_and_its_record_says_by_whom(rig: Rig) -> None:
    rig.put("short", ttl={"N": str(int(time.time()) + 1)})
    rig.put("kept", ttl={"S": "no number"})
    assert sorted(rig.hears(3), key=str) == [
        ["kept", "INSERT", None],
        ["short", "INSERT", None],
        ["short", "REMOVE", EXPIRY_SERVICE],
    ]


def test_what_follows_a_failed_record_is_not_lost_and_the_failed_one_is_kept(rig: Rig) -> None:
    rig.put("before", "poison", "after")
    lost = eventually(rig.lost, 15, every=0.2)
    assert {key for key, _, _ in rig.hears(2)} == {"before", "after"}
    assert [json.loads(one)["DDBStreamBatchInfo"]["batchSize"] for one in lost] == [1]
    assert json.loads(lost[0])["requestContext"]["condition"] == "RetryAttemptsExhausted"


def test_a_slow_function_of_a_stream_holds_up_no_queue(rig: Rig) -> None:
    rig.put("slow")
    time.sleep(0.5)
    began = time.monotonic()
    rig.emulator.client("sqs").send_message(QueueUrl=rig.source_url, MessageBody="quick")
    assert rig.hears(1) == [["quick", None, None]]
    assert time.monotonic() - began < 3
    assert rig.hears(1) == [["slow", "INSERT", None]]


def test_an_answer_without_a_body_arrives(cloud: Cloud) -> None:
    made = cloud.create().json()["id"]
    cloud.destroy(made)
    answer = cloud.api.delete(f"/v1/sandboxes/{made}")
    assert (answer.status_code, answer.content) == (204, b"")
