"""The deployment's bus, both ways: what other systems ask for is done, and what we do is told."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cloud.e2e.deployment import Cloud
from tests.local.acceptance.deployment import eventually

SOURCE, US = "acme.orders", "sandbox-router"
SECONDS = 40.0


@pytest.fixture(scope="module")
def cloud(enforced: Cloud) -> Cloud:
    return enforced


class Listener:
    """A queue behind a rule of the bus that takes all we tell."""

    def __init__(self, cloud: Cloud) -> None:
        self._sqs, self._events = (cloud.emulator.client(name) for name in ("sqs", "events"))
        self._bus, self._rule = cloud.variables["EVENT_BUS_NAME"], f"told-{uuid.uuid4().hex[:8]}"
        self._url = self._sqs.create_queue(QueueName=self._rule)["QueueUrl"]
        named = self._sqs.get_queue_attributes(QueueUrl=self._url, AttributeNames=["QueueArn"])
        arn = named["Attributes"]["QueueArn"]
        on = {"EventBusName": self._bus}
        pattern = json.dumps({"source": [US]})
        self._events.put_rule(Name=self._rule, EventPattern=pattern, **on)
        self._events.put_targets(Rule=self._rule, Targets=[{"Id": "q", "Arn": arn}], **on)
        self.told: list[dict[str, Any]] = []

    def states(self, sandbox_id: str) -> list[str]:
        """The states of a sandbox that were told so far."""
        request = {"QueueUrl": self._url, "MaxNumberOfMessages": 10}
        while messages := self._sqs.receive_message(**request).get("Messages"):
            self.told += [json.loads(message["Body"]) for message in messages]
            for one in messages:
                self._sqs.delete_message(QueueUrl=self._url, ReceiptHandle=one["ReceiptHandle"])
        changes = [e["detail"] for e in self.told if e["detail-type"] == "sandbox.state.changed"]
        return [one["state"] for one in changes if one["sandbox_id"] == sandbox_id]

    def close(self) -> None:
        self._events.remove_targets(Rule=self._rule, EventBusName=self._bus, Ids=["q"])
        self._events.delete_rule(Name=self._rule, EventBusName=self._bus)
        self._sqs.delete_queue(QueueUrl=self._url)


@pytest.fixture
def listener(cloud: Cloud) -> Iterator[Listener]:
    made = Listener(cloud)
    yield made
    made.close()


def sent(cloud: Cloud, kind: str, detail: dict[str, Any]) -> None:
    """What another system puts on the bus."""
    entry = {"Source": SOURCE, "DetailType": kind, "Detail": json.dumps(detail)}
    entry["EventBusName"] = cloud.variables["EVENT_BUS_NAME"]
    answer = cloud.emulator.client("events").put_events(Entries=[entry])
    assert answer["FailedEntryCount"] == 0


def test_events_make_and_end_a_sandbox_and_both_are_told(cloud: Cloud, listener: Listener) -> None:
    headers = {"Authorization": f"Bearer {cloud.add_key('acme')}"}

    def boxes() -> list[dict[str, Any]]:
        page = cloud.api.get("/v1/sandboxes", params={"label": "order=7"}, headers=headers)
        found: list[dict[str, Any]] = page.json()["data"]
        return [box for box in found if box["state"] == "running"]

    asked = {"size": "2x4", "ttl_seconds": 300, "labels": {"order": "7"}}
    sent(cloud, "sandbox.create.requested", asked)
    (box,) = eventually(boxes, SECONDS, every=0.5)
    assert len(cloud.instances(box["id"])) == 1
    sent(cloud, "sandbox.destroy.requested", {"sandbox_id": box["id"]})
    eventually(lambda: cloud.instances(box["id"]) == [], SECONDS, every=0.5)
    told = {"starting", "running", "destroying", "destroyed"}  # in whatever order they arrive
    eventually(lambda: set(listener.states(box["id"])) == told, SECONDS, every=0.5)
