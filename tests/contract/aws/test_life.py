"""The main ways of a sandbox's life, told for the simulation, over the drivers of AWS.

Time is the simulation's: moto's SQS reads it too, so delays and visibility pass when it does.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from typing import Any

import pytest
from moto.backends import get_backend
from moto.core.models import DEFAULT_ACCOUNT_ID

from adapters.aws.queue import SqsQueue
from adapters.aws.secrets import SecretStore
from adapters.aws.session import Session
from adapters.aws.table import DynamoTable
from adapters.aws.values import decoded
from adapters.aws.vault import SecretVault
from sandbox_router.ports import Clock, Message
from sandbox_router.table import Item
from tests.contract.aws.cloud import REGION, TABLE, made_secret, make_table
from tests.sim import test_life as stories
from tests.sim import world

STORIES = {name: story for name, story in vars(stories).items() if name.startswith("test_")}
NAMES = itertools.count()


class Scanned(DynamoTable):
    """The driver, and all that is in the table."""

    def __init__(self, client: Any) -> None:
        super().__init__(client, TABLE)
        self._all = client.get_paginator("scan")

    def items(self) -> list[Item]:
        pages = self._all.paginate(TableName=TABLE, ConsistentRead=True)
        found = [decoded(item) for page in pages for item in page["Items"]]
        return sorted(found, key=lambda item: (str(item["pk"]), str(item["sk"])))


class Taken:
    """The driver, and what an event source mapping does with the queue."""

    def __init__(self, client: Any, clock: Clock) -> None:
        self._client, self._clock = client, clock
        number = next(NAMES)
        made = (
            (name, client.create_queue(QueueName=f"{name}-{number}"))
            for name in ("create", "teardown")
        )
        self._urls = {name: answer["QueueUrl"] for name, answer in made}
        self._queue = SqsQueue(client, self._urls)
        self.send = self._queue.send
        self._at: dict[str, str] = {}

    def receive(self, queue: str, limit: int, visibility_seconds: int, now: int) -> list[Message]:
        answer = self._client.receive_message(
            QueueUrl=self._urls[queue],
            MaxNumberOfMessages=limit,
            VisibilityTimeout=visibility_seconds,
        )
        found = []
        for each in answer.get("Messages", ()):
            body = json.loads(each["Body"])
            assert list(body) == ["sandbox_id"]
            self._at[each["ReceiptHandle"]] = self._urls[queue]
            found.append(Message(body["sandbox_id"], each["ReceiptHandle"]))
        return found

    def done(self, message: Message) -> None:
        self._client.delete_message(
            QueueUrl=self._at[message.receipt], ReceiptHandle=message.receipt
        )

    def later(self, message: Message, seconds: float) -> None:
        self._client.change_message_visibility(
            QueueUrl=self._at[message.receipt],
            ReceiptHandle=message.receipt,
            VisibilityTimeout=math.ceil(seconds),
        )

    def next_due(self) -> int | None:
        queues = get_backend("sqs")[DEFAULT_ACCOUNT_ID][REGION].queues
        mine = [queues[url.rpartition("/")[2]] for url in self._urls.values()]
        times = [
            max(each.delayed_until, each.visible_at) for queue in mine for each in queue._messages
        ]
        # moto shows a message again after that moment, not at it.
        return int(min(times)) + 1 if times else None

    def restart(self) -> None:
        """Messages in hand come back when their visibility ends, and not before."""

    def reclaim(self) -> None:
        """Nobody can."""


@pytest.fixture
def over_aws(account: Session, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Worlds are made over AWS for the length of a test."""
    dynamodb, sqs = account.made("dynamodb"), account.made("sqs")
    make_table(dynamodb)
    manager = account.made("secretsmanager")
    vault = SecretVault(SecretStore(manager), made_secret(manager, "k" * 64))

    def queue(clock: Clock) -> Taken:
        monkeypatch.setattr("moto.sqs.models.unix_time_millis", lambda *_: float(clock.now()))
        monkeypatch.setattr("moto.sqs.models.unix_time", lambda *_: clock.now() / 1000)
        return Taken(sqs, clock)

    monkeypatch.setattr(world, "MemoryTable", lambda: Scanned(dynamodb))
    monkeypatch.setattr(world, "MemoryQueue", queue)
    monkeypatch.setattr(world, "FakeVault", lambda: vault)
    yield
    assert Scanned(dynamodb).items(), "the world was another one"
    dynamodb.delete_table(TableName=TABLE)


@pytest.mark.parametrize("name", STORIES)
def test_a_life_goes_on_aws_as_in_the_simulation(name: str, over_aws: None) -> None:
    story: Callable[[], None] = STORIES[name]
    story()
