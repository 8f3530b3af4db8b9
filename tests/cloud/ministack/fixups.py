"""What ministack's CloudFormation drops without a word or gets wrong, mended after a deploy."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

Client = Callable[[str], Any]


def apply(client: Client, stack: str, template: dict[str, Any]) -> list[str]:
    """Expiry and backups of a stack's tables, async retries of its functions, the secrets that its
    roles may read; what was set.
    """
    described = client("cloudformation").describe_stack_resources(StackName=stack)
    ids = {r["LogicalResourceId"]: r["PhysicalResourceId"] for r in described["StackResources"]}
    done: list[str] = []
    for id, resource in template["Resources"].items():
        properties = resource.get("Properties", {})
        if resource["Type"] == "AWS::DynamoDB::GlobalTable":
            done += _table(client("dynamodb"), ids[id], properties)
        elif resource["Type"] == "AWS::Lambda::EventInvokeConfig":
            done += _retries(client, ids, properties)
        elif resource["Type"] == "AWS::IAM::Role":
            done += _secrets(client, ids[id])
    return done


def _table(dynamodb: Any, name: str, properties: dict[str, Any]) -> list[str]:
    expiry = properties["TimeToLiveSpecification"]
    known = dynamodb.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
    if known["TimeToLiveStatus"] == "DISABLED":
        dynamodb.update_time_to_live(TableName=name, TimeToLiveSpecification=expiry)
    backups = properties["Replicas"][0]["PointInTimeRecoverySpecification"]
    dynamodb.update_continuous_backups(TableName=name, PointInTimeRecoverySpecification=backups)
    return [f"expiry of {name}", f"backups of {name}"]


def _retries(client: Client, ids: dict[str, str], properties: dict[str, Any]) -> list[str]:
    name = ids[properties["FunctionName"]["Ref"]]
    queue = ids[properties["DestinationConfig"]["OnFailure"]["Destination"]["Fn::GetAtt"][0]]
    attributes = client("sqs").get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])
    client("lambda").put_function_event_invoke_config(
        FunctionName=name,
        MaximumRetryAttempts=properties["MaximumRetryAttempts"],
        MaximumEventAgeInSeconds=properties["MaximumEventAgeInSeconds"],
        DestinationConfig={"OnFailure": {"Destination": attributes["Attributes"]["QueueArn"]}},
    )
    return [f"retries of {name}"]


def _secrets(client: Client, role: str) -> list[str]:
    """`Ref` of a secret is its ARN on AWS, and its name here: a policy with that allows nothing."""
    iam, done = client("iam"), []
    arns = {
        one["Name"]: one["ARN"] for one in client("secretsmanager").list_secrets()["SecretList"]
    }
    for policy in iam.list_role_policies(RoleName=role)["PolicyNames"]:
        document = iam.get_role_policy(RoleName=role, PolicyName=policy)["PolicyDocument"]
        wrong = [one for one in document["Statement"] if str(one.get("Resource")) in arns]
        for statement in wrong:
            statement["Resource"] = arns[statement["Resource"]]
        if wrong:
            text = json.dumps(document)
            iam.put_role_policy(RoleName=role, PolicyName=policy, PolicyDocument=text)
            done.append(f"secrets of {role}")
    return done
