"""Records, queues, clocks and streams: what the nets hang on."""

from __future__ import annotations

import json
from typing import Any

from adapters.items import SORTS
from functions.catalog import WORKERS, Every, FromBus, FromQueues, FromStream
from sandbox_router.table import INDEXES, TTL
from tests.cloud.synthesis import Assembly, Resource

CHANGES: dict[str, Any] = {
    "new": {"eventName": ["INSERT"]},
    "expired": {
        "eventName": ["REMOVE"],
        "userIdentity": {"type": ["Service"], "principalId": ["dynamodb.amazonaws.com"]},
    },
}
TYPES = {int: "N", str: "S"}


def resources(assembly: Assembly, stack: str, kind: str) -> list[dict[str, Any]]:
    found = assembly.stacks[stack]["Resources"].values()
    return [resource for resource in found if resource["Type"] == kind]


def test_the_table_is_what_the_store_expects(assembly: Assembly) -> None:
    ((table,),) = (assembly.of_type("AWS::DynamoDB::GlobalTable").values(),)
    types = {one["AttributeName"]: one["AttributeType"] for one in table["AttributeDefinitions"]}
    assert key(table) == ("pk", "sk")
    indexes = {one["IndexName"]: one for one in table["GlobalSecondaryIndexes"]}
    assert {name: key(one) for name, one in indexes.items()} == INDEXES
    for hashed, sorts in INDEXES.values():
        assert (types[hashed], types[sorts]) == ("S", TYPES[SORTS[sorts]])
    assert {one["Projection"]["ProjectionType"] for one in indexes.values()} == {"ALL"}
    assert table["BillingMode"] == "PAY_PER_REQUEST"
    assert table["TimeToLiveSpecification"] == {"AttributeName": TTL, "Enabled": True}
    assert table["StreamSpecification"] == {"StreamViewType": "NEW_AND_OLD_IMAGES"}


def key(table: Resource) -> tuple[str, str]:
    names = {one["KeyType"]: one["AttributeName"] for one in table["KeySchema"]}
    return names["HASH"], names["RANGE"]


def test_records_and_secrets_outlive_their_stack(assembly: Assembly) -> None:
    (table,) = resources(assembly, "data", "AWS::DynamoDB::GlobalTable")
    (replica,) = table["Properties"]["Replicas"]
    assert replica["DeletionProtectionEnabled"] is True
    backups = replica["PointInTimeRecoverySpecification"]
    assert backups == {"PointInTimeRecoveryEnabled": True}
    secrets = resources(assembly, "data", "AWS::SecretsManager::Secret")
    assert len(secrets) == 3
    (bucket,) = resources(assembly, "data", "AWS::S3::Bucket")
    for resource in (table, bucket, *secrets):
        assert resource["DeletionPolicy"] == resource["UpdateReplacePolicy"] == "Retain"


def test_no_secret_is_in_a_template(assembly: Assembly) -> None:
    secrets = assembly.of_type("AWS::SecretsManager::Secret").values()
    given = [secret["SecretString"] for secret in secrets if "SecretString" in secret]
    assert [json.loads(text) for text in given] == [{"pools": [], "images": {}}]
    made = [s["GenerateSecretString"] for s in secrets if "GenerateSecretString" in s]
    assert [one["PasswordLength"] for one in made] == [64, 64]


def test_every_queue_has_time_for_its_function_and_a_place_for_what_fails(
    assembly: Assembly,
) -> None:
    queues = assembly.of_type("AWS::SQS::Queue", "workers")
    mapped = {m["EventSourceArn"]["Fn::GetAtt"][0]: m for m in mappings(assembly, "Queue")}
    rows = [(row, name) for row in WORKERS if isinstance(row, FromQueues) for name in row.queues]
    assert len(mapped) == len(rows)
    for row, name in rows:
        (id,) = (one for one in mapped if one.startswith(f"{name.capitalize()}Queue"))
        queue = queues[id]
        assert queue["VisibilityTimeout"] >= 6 * assembly.functions[row.name]["Timeout"]
        assert queue["RedrivePolicy"]["maxReceiveCount"] == 5
        dead = queues[queue["RedrivePolicy"]["deadLetterTargetArn"]["Fn::GetAtt"][0]]
        assert dead["MessageRetentionPeriod"] == 14 * 86_400
        assert mapped[id]["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
        assert mapped[id]["BatchSize"] == row.batch
        assert assembly.functions[row.name]["RecursiveLoop"] == "Allow"


def mappings(assembly: Assembly, source: str) -> list[Resource]:
    found = assembly.of_type("AWS::Lambda::EventSourceMapping").values()
    return [one for one in found if source in json.dumps(one["EventSourceArn"])]


def test_every_clock_ticks_as_its_row_says_and_catches_nothing_up(assembly: Assembly) -> None:
    rules = assembly.of_type("AWS::Events::Rule").values()
    clocks = {_function(rule, assembly): rule for rule in rules if "ScheduleExpression" in rule}
    rows = {row.name: row for row in WORKERS if isinstance(row, Every)}
    assert set(clocks) == set(rows)
    for name, rule in clocks.items():
        unit = "minute" if rows[name].minutes == 1 else "minutes"
        assert rule["ScheduleExpression"] == f"rate({rows[name].minutes} {unit})"
        assert rule["State"] == "ENABLED"
        (target,) = rule["Targets"]
        assert target["RetryPolicy"]["MaximumRetryAttempts"] == 0


def _function(rule: Resource, assembly: Assembly) -> str:
    """The row of the function a rule calls."""
    (target,) = rule["Targets"]
    made = assembly.of_type("AWS::Lambda::Function")[target["Arn"]["Fn::GetAtt"][0]]
    return str(made["Handler"].split(".")[2])


def test_the_bus_wakes_for_others_events_and_what_raises_is_tried_again(
    assembly: Assembly,
) -> None:
    rules = assembly.of_type("AWS::Events::Rule").values()
    heard = {_function(rule, assembly): rule for rule in rules if "EventPattern" in rule}
    rows = {row.name: row for row in WORKERS if isinstance(row, FromBus)}
    assert set(heard) == set(rows)
    for name, rule in heard.items():
        assert "Bus" in json.dumps(rule["EventBusName"])
        assert rule["EventPattern"] == {
            "source": [{"anything-but": ["sandbox-router"]}],
            "detail-type": list(rows[name].detail_types),
        }
    for again in assembly.of_type("AWS::Lambda::EventInvokeConfig").values():
        assert again["MaximumRetryAttempts"] == 2
        assert "DeadLetters" in json.dumps(again["DestinationConfig"]["OnFailure"])


def test_the_stream_wakes_only_for_what_a_row_asks_for(assembly: Assembly) -> None:
    rows = [row for row in WORKERS if isinstance(row, FromStream)]
    found = mappings(assembly, "StreamArn")
    assert len(found) == len(rows)
    for row, mapping in zip(rows, found, strict=True):
        (filter,) = mapping["FilterCriteria"]["Filters"]
        assert json.loads(filter["Pattern"]) == {
            "dynamodb": {"Keys": {"pk": {"S": [{"prefix": row.prefix}]}}},
            **CHANGES[row.change],
        }
        assert mapping["StartingPosition"] == "TRIM_HORIZON"
        assert mapping["BatchSize"] == row.batch
        assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
        assert mapping["BisectBatchOnFunctionError"] is True
        assert mapping["MaximumRetryAttempts"] == 20
        assert "DeadLetters" in json.dumps(mapping["DestinationConfig"]["OnFailure"])
