"""Teardown with one net alone, the others switched off; how late it was is printed (`-s`).

Without the queue every message on its way is thrown away. The provider's own limit comes a minute
after the lifetime, so it is by a call of ours that an instance ends here.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.cloud.e2e.conftest import Say
from tests.cloud.e2e.deployment import Cloud
from tests.cloud.e2e.watched import Box, moment

TTL, OWN_LIMIT_SECONDS, OVERDUE_SECONDS = 30, 60, 60
SWEEP_SECONDS, QUEUE_SECONDS, CALLED_SECONDS = 120, 10, 30
"""After the lifetime: the sweep's bound when a send was lost; the queue's, which counts in whole
seconds; for a net that is called by hand here, after its call.
"""


@pytest.fixture(scope="module")
def cloud(enforced: Cloud) -> Cloud:
    return enforced


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
def without_clock(cloud: Cloud) -> Iterator[None]:
    """The clock stands still: no sweep, no reconcile."""
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


def short_lived(cloud: Cloud) -> Box:
    """A sandbox that nobody but a net will end."""
    answer = cloud.create(ttl_seconds=TTL)
    assert answer.status_code == 201, answer.text
    found: Box = answer.json()
    return found


def ended(cloud: Cloud, box: Box, since: float, seconds: float) -> str:
    """Destroyed by us within so many seconds of a moment, confirmed, and gone at the provider; how
    late that was.
    """
    done = cloud.reaches(box["id"], "destroyed", since + seconds - time.time())
    assert done["state_reason"] == "expired"
    (instance,) = cloud.instances(box["id"], alive=False)
    late = moment(instance["gone_at"]) - moment(box["expires_at"])
    assert 0 <= late < OWN_LIMIT_SECONDS
    assert moment(instance["gone_at"]) - since <= seconds
    assert [c for c in cloud.calls(0, op="delete") if c["instance_id"] == box["instance_id"]] != []
    return f"gone {late:.1f} s after its lifetime"


def outlived(cloud: Cloud, box: Box) -> float:
    """Wait until it is over, and still runs since nothing would end it; the moment."""
    time.sleep(max(0.0, moment(box["expires_at"]) + 1 - time.time()))
    assert cloud.get(box["id"])["state"] == "running"
    return time.time()


def test_the_queue_alone_ends_what_has_expired(cloud: Cloud, say: Say) -> None:
    with without_clock(cloud), without(cloud, "guard"):
        box = short_lived(cloud)
        say(f"queue alone: {ended(cloud, box, moment(box['expires_at']), QUEUE_SECONDS)}")


def test_the_sweep_alone_ends_what_has_expired(cloud: Cloud, say: Say) -> None:
    """Its own messages take the queue: it is the one that was sent at the create that is lost."""
    with without(cloud, "guard"):
        box = short_lived(cloud)
        forget_messages(cloud)
        say(f"sweep alone: {ended(cloud, box, moment(box['expires_at']), SWEEP_SECONDS)}")


def test_the_guard_alone_ends_what_has_expired(cloud: Cloud, say: Say) -> None:
    """Neither clock nor queue: only the stream still tells anybody. The guard's own delay of ten
    minutes is shortened in the table, once the sandbox is over.
    """
    with without_clock(cloud), without(cloud, "advance"):
        box = short_lived(cloud)
        forget_messages(cloud)
        guard = (f"GUARD#{box['id']}", "A")
        assert stored(cloud, guard, "ttl") > moment(box["expires_at"])
        since = outlived(cloud, box)
        store(cloud, guard, "ttl", int(since) - 1)
        say(f"guard alone: {ended(cloud, box, since, CALLED_SECONDS)}")


def test_reconcile_alone_ends_what_has_expired(cloud: Cloud, say: Say) -> None:
    """It acts on what nobody has looked at for a minute, and comes every five: the minute is taken
    off in the table, and it is called by hand, once the sandbox is over.
    """
    with without_clock(cloud), without(cloud, "advance", "guard"):
        box = short_lived(cloud)
        forget_messages(cloud)
        since, record = outlived(cloud, box), (f"SBX#{box['id']}", "A")
        assert stored(cloud, record, "due_at") == int(1000 * moment(box["expires_at"]))
        store(cloud, record, "due_at", int(1000 * (since - OVERDUE_SECONDS)))
        name = cloud.functions["reconcile"]["FunctionName"]
        answer = cloud.emulator.client("lambda").invoke(FunctionName=name, Payload=b"{}")
        assert "FunctionError" not in answer
        say(f"reconcile alone: {ended(cloud, box, since, CALLED_SECONDS)}")


def stored(cloud: Cloud, key: tuple[str, str], name: str) -> int:
    """A number in the table."""
    pk, sk = ({"S": part} for part in key)
    table = cloud.emulator.client("dynamodb")
    item = table.get_item(TableName=cloud.table, Key={"pk": pk, "sk": sk})["Item"]
    return int(item[name]["N"])


def store(cloud: Cloud, key: tuple[str, str], name: str, value: int) -> None:
    """Put another one there."""
    pk, sk = ({"S": part} for part in key)
    cloud.emulator.client("dynamodb").update_item(
        TableName=cloud.table,
        Key={"pk": pk, "sk": sk},
        UpdateExpression="SET #name = :value",
        ExpressionAttributeNames={"#name": name},
        ExpressionAttributeValues={":value": {"N": str(value)}},
    )
