"""Who may do what: spelled out here once more, by hand, so that a grant cannot grow unseen."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from functions.catalog import FUNCTIONS, Http, Worker
from tests.cloud.synthesis import Assembly, listed

RUNS = {
    "logs:CreateLogStream log",
    "logs:PutLogEvents log",
    "xray:PutTelemetryRecords *",
    "xray:PutTraceSegments *",
}
ROUTER = {f"secretsmanager:GetSecretValue {name}" for name in ("pepper", "pools")}
READS = {f"dynamodb:{action} table" for action in ("GetItem", "Query")}
WRITES = {
    f"dynamodb:{action}Item table" for action in ("ConditionCheck", "Delete", "Put", "Update")
}
SENDS = {f"sqs:SendMessage {name}" for name in ("create", "teardown")}
TAKES = {
    f"sqs:{action} {queue}"
    for action in (
        "ChangeMessageVisibility",
        "DeleteMessage",
        "GetQueueAttributes",
        "ReceiveMessage",
    )
    for queue in ("create", "teardown")
}
SHOWS = RUNS | ROUTER | READS
MOVES = SHOWS | WRITES | SENDS | {"secretsmanager:GetSecretValue vault"}
FOLLOWS = {
    *(f"dynamodb:{a} stream" for a in ("DescribeStream", "GetRecords", "GetShardIterator")),
    "dynamodb:ListStreams *",
}
LETTERS = {"sqs:SendMessage eventdeadletters"}
S3 = {
    "offer_upload": {"s3:PutObject objects/up/*"},
    "offer_download": {
        *(f"s3:{action}Object objects/down/*" for action in ("Get", "Put")),
        "s3:AbortMultipartUpload objects/down/*",
    },
    "take_upload": {
        *(f"s3:{action}Object objects/up/*" for action in ("Delete", "Get")),
        *(f"s3:{action}Object objects/done/*" for action in ("Get", "Put")),
        "s3:ListBucket objects",
    },
}
"""Who touches files on their way: what a signed URL may, its signer must."""
MAY = {
    **dict.fromkeys(("get_health", "get_openapi"), RUNS),
    "authorize": RUNS | ROUTER | {"dynamodb:GetItem table"},
    **dict.fromkeys(
        ("list_providers", "get_provider", "list_sizes", "list_regions", "list_images"), SHOWS
    ),
    "route_sandbox": SHOWS,
    **dict.fromkeys(("list_sandboxes", "list_snapshots"), SHOWS | {"dynamodb:Query index/tenant"}),
    "get_snapshot": SHOWS,
    "advance": MOVES | TAKES,
    "sweep": MOVES | {"dynamodb:Query index/due"},
    "guard": MOVES | FOLLOWS | {"sqs:SendMessage guarddeadletters"},
    "publish": RUNS
    | FOLLOWS
    | LETTERS
    | {"events:PutEvents bus", "sqs:SendMessage publishdeadletters"},
    **{name: MOVES | touches for name, touches in S3.items()},
    "accept_event": MOVES | LETTERS | {"sqs:SendMessage accepteventdeadletters"},
}
"""All others move sandboxes."""
NOWHERE = {"dynamodb:ListStreams", "xray:PutTelemetryRecords", "xray:PutTraceSegments"}
RECORDS = ["SBX#*", "SNAP#*", "LOG#*", "IDEM#*", "GUARD#*", "POOL#*"]
rows = pytest.mark.parametrize("row", FUNCTIONS, ids=lambda row: row.name)


def named(resource: Any) -> str:
    """A word for what a statement is about, out of an ARN, a reference or an import."""
    if resource == "*":
        return "*"
    text = json.dumps(resource)
    if "/index/" in text:
        return "index/" + text.partition("/index/")[2].partition('"')[0]
    if "Objects" in text:
        return "objects" + "".join(part for part in listed_parts(resource) if part[:1] == "/")
    for word in ("StreamArn", "Table", "Pepper", "Pools", "Vault", "Bus"):
        if word in text:
            return word.removesuffix("Arn").lower()
    for word in ("CreateQueue", "TeardownQueue"):
        if word in text:
            return word.removesuffix("Queue").lower()
    name = resource["Fn::GetAtt"][0][:-8]
    return "log" if name.endswith("Log") else name.lower()


def listed_parts(resource: Any) -> list[str]:
    """The words CDK joins to an ARN."""
    _, parts = resource.get("Fn::Join", ["", []])
    return [part for part in parts if isinstance(part, str)]


def allowed(assembly: Assembly, function: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Action, what it is about, under which condition."""
    for statement in assembly.statements(function):
        assert statement["Effect"] == "Allow"
        assert not {"NotAction", "NotResource"} & set(statement)
        for action in listed(statement["Action"]):
            for resource in listed(statement["Resource"]):
                yield action, named(resource), statement.get("Condition", {})


@rows
def test_a_function_may_do_exactly_this(assembly: Assembly, row: Http | Worker) -> None:
    found = {f"{action} {about}" for action, about, _ in allowed(assembly, row.name)}
    assert found == MAY.get(row.name, MOVES)


@rows
def test_no_action_is_a_wildcard_and_few_have_no_resource(
    assembly: Assembly, row: Http | Worker
) -> None:
    found = list(allowed(assembly, row.name))
    assert [action for action, _, _ in found if "*" in action] == []
    assert {action for action, about, _ in found if about == "*"} <= NOWHERE


@rows
def test_only_the_authorizer_sees_keys_and_nobody_writes_one(
    assembly: Assembly, row: Http | Worker
) -> None:
    for action, about, condition in allowed(assembly, row.name):
        if about == "table":
            leading = condition["ForAllValues:StringLike"]["dynamodb:LeadingKeys"]
            assert leading == (["KEY#*"] if row.name == "authorize" else RECORDS), action


def test_roles_belong_to_lambda_and_hold_all_there_is(assembly: Assembly) -> None:
    assert assembly.of_type("AWS::IAM::Policy") == {}
    assert assembly.of_type("AWS::IAM::ManagedPolicy") == {}
    for role in assembly.of_type("AWS::IAM::Role").values():
        assert "ManagedPolicyArns" not in role
        (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
        assert trust["Principal"] == {"Service": "lambda.amazonaws.com"}


def test_only_the_gateway_and_the_clock_may_invoke_and_only_from_here(assembly: Assembly) -> None:
    for permission in assembly.of_type("AWS::Lambda::Permission").values():
        assert permission["Action"] == "lambda:InvokeFunction"
        assert permission["Principal"] in ("apigateway.amazonaws.com", "events.amazonaws.com")
        assert "SourceArn" in permission


def test_the_bucket_is_private_encrypted_and_forgets(assembly: Assembly) -> None:
    (id, bucket), *others = assembly.of_type("AWS::S3::Bucket").items()
    assert others == []
    blocked = bucket["PublicAccessBlockConfiguration"]
    assert len(blocked) == 4
    assert set(blocked.values()) == {True}
    assert bucket["OwnershipControls"]["Rules"] == [{"ObjectOwnership": "BucketOwnerEnforced"}]
    (encryption,) = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert encryption["ServerSideEncryptionByDefault"] == {"SSEAlgorithm": "AES256"}
    (rule,) = bucket["LifecycleConfiguration"]["Rules"]
    assert (rule["Status"], rule["ExpirationInDays"]) == ("Enabled", 1)
    assert rule["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 1}
    assert not {"CorsConfiguration", "VersioningConfiguration", "BucketName"} & set(bucket)
    (policy,) = assembly.of_type("AWS::S3::BucketPolicy").values()
    assert policy["Bucket"] == {"Ref": id}
    (statement,) = policy["PolicyDocument"]["Statement"]
    assert (statement["Effect"], statement["Principal"]) == ("Deny", {"AWS": "*"})
    assert statement["Action"] == "s3:*"
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


def test_queues_take_nothing_in_the_clear(assembly: Assembly) -> None:
    queues = assembly.of_type("AWS::SQS::Queue")
    policies = assembly.of_type("AWS::SQS::QueuePolicy").values()
    told = {ref["Ref"] for policy in policies for ref in policy["Queues"]}
    assert told == set(queues)
    for policy in policies:
        (statement,) = policy["PolicyDocument"]["Statement"]
        assert statement["Effect"] == "Deny"
        assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
