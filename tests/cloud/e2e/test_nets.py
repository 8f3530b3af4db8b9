"""Teardown with one net alone: the other switched off, every message on its way thrown away."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.cloud.e2e.deployment import Cloud
from tests.local.acceptance.deployment import eventually

TTL = 30
SWEEP_SECONDS, GUARD_SECONDS = TTL + 120, 30
"""The sweep's bound when a send was lost; the emulator's expiry service is a few seconds late."""


def mappings(cloud: Cloud, function: str) -> list[str]:
    """The ids of what feeds a function from queues and streams."""
    arn = cloud.functions[function]["FunctionArn"]
    found = cloud.emulator.client("lambda").list_event_source_mappings()["EventSourceMappings"]
    return [one["UUID"] for one in found if one["FunctionArn"] == arn]


@contextmanager
def without(cloud: Cloud, *functions: str) -> Iterator[None]:
    """Nothing feeds these functions."""
    client = cloud.emulator.client("lambda")
    ids = [one for function in functions for one in mappings(cloud, function)]
    assert ids
    for one in ids:
        client.update_event_source_mapping(UUID=one, Enabled=False)
    try:
        yield
    finally:
        for one in ids:
            client.update_event_source_mapping(UUID=one, Enabled=True)


@contextmanager
def without_sweep(cloud: Cloud) -> Iterator[None]:
    """The clock stands still."""
    client = cloud.emulator.client("events")
    rules = [r["Name"] for r in client.list_rules()["Rules"] if r.get("ScheduleExpression")]
    assert rules
    for name in rules:
        client.disable_rule(Name=name)
    try:
        yield
    finally:
        for name in rules:
            client.enable_rule(Name=name)


def forget_messages(cloud: Cloud) -> None:
    """A queue that lost what its writers sent."""
    sqs = cloud.emulator.client("sqs")
    for name in ("CREATE_QUEUE_URL", "TEARDOWN_QUEUE_URL"):
        sqs.purge_queue(QueueUrl=cloud.variables[name])
        counts = sqs.get_queue_attributes(QueueUrl=cloud.variables[name], AttributeNames=["All"])
        waiting = {k: v for k, v in counts["Attributes"].items() if k.startswith("Approximate")}
        assert set(waiting.values()) == {"0"}


def short_lived(cloud: Cloud) -> dict[str, Any]:
    """A sandbox that nobody but a net will end: the provider's own limit is later."""
    answer = cloud.create(ttl_seconds=TTL)
    assert answer.status_code == 201, answer.text
    forget_messages(cloud)
    found: dict[str, Any] = answer.json()
    return found


def ended(cloud: Cloud, box: dict[str, Any], seconds: float) -> None:
    """Destroyed by us, confirmed, and at the provider by a call of ours."""
    done = cloud.reaches(box["id"], "destroyed", seconds)
    assert done["state_reason"] == "expired"
    assert cloud.instances(box["id"]) == []
    assert [c for c in cloud.calls(0, op="delete") if c["instance_id"] == box["instance_id"]] != []


def test_the_sweep_alone_ends_what_has_expired(cloud: Cloud) -> None:
    with without(cloud, "guard"):
        box = short_lived(cloud)
        ended(cloud, box, SWEEP_SECONDS)


def test_the_guard_alone_ends_what_has_expired(cloud: Cloud) -> None:
    """Neither clock nor queue: only the stream still tells anybody. The guard's own delay of ten
    minutes is shortened in the table, once the sandbox is over.
    """
    with without_sweep(cloud), without(cloud, "advance"):
        box = short_lived(cloud)
        key = {"pk": {"S": f"GUARD#{box['id']}"}, "sk": {"S": "A"}}
        dynamodb = cloud.emulator.client("dynamodb")
        guard = dynamodb.get_item(TableName=cloud.table, Key=key)["Item"]
        assert int(guard["ttl"]["N"]) > time.time() + TTL
        time.sleep(TTL + 1)
        assert cloud.get(box["id"])["state"] == "running"
        dynamodb.update_item(
            TableName=cloud.table,
            Key=key,
            UpdateExpression="SET #ttl = :past",
            ExpressionAttributeNames={"#ttl": "ttl"},
            ExpressionAttributeValues={":past": {"N": str(int(time.time()) - 1)}},
        )
        ended(cloud, box, GUARD_SECONDS)
    eventually(lambda: cloud.instances(box["id"]) == [], 5)
