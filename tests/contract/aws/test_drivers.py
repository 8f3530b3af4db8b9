"""SQS, secrets, the vault over them and EventBridge: what goes out, and what failing means."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError  # type: ignore[import-untyped]
from botocore.stub import Stubber  # type: ignore[import-untyped]

from adapters.aws.bus import MAX_BYTES, EventBridge
from adapters.aws.queue import SqsLetters, SqsQueue
from adapters.aws.secrets import SecretStore
from adapters.aws.session import Session
from adapters.aws.vault import SecretVault
from sandbox_router.model.event import Event
from sandbox_router.model.failure import Internal, StoreBusy
from sandbox_router.model.secret import Secret
from sandbox_router.ports import Bus, DeadLetters, Queue
from tests.contract.aws.cloud import made_secret

ID = "sbx-" + "a" * 26
DOWN = EndpointConnectionError(endpoint_url="https://aws.test/")


@pytest.fixture
def sqs(account: Session) -> Any:
    return account.made("sqs")


@pytest.fixture
def urls(sqs: Any) -> Iterator[dict[str, str]]:
    names = ("create", "teardown", "letters")
    urls = {name: sqs.create_queue(QueueName=name)["QueueUrl"] for name in names}
    yield urls
    for url in urls.values():
        sqs.delete_queue(QueueUrl=url)


def received(sqs: Any, url: str) -> list[Any]:
    found = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", [])
    return [json.loads(message["Body"]) for message in found]


def test_a_message_names_its_sandbox_and_nothing_else(sqs: Any, urls: dict[str, str]) -> None:
    queue: Queue = SqsQueue(sqs, urls)
    queue.send("create", ID)
    queue.send("teardown", ID, -3.5)
    assert received(sqs, urls["create"]) == received(sqs, urls["teardown"]) == [{"sandbox_id": ID}]


@pytest.mark.parametrize(
    ("seconds", "whole"), [(0, 0), (0.001, 1), (1, 1), (1.01, 2), (899.2, 900), (900, 900), (-1, 0)]
)
def test_a_delay_is_whole_seconds_and_never_early(sqs: Any, seconds: float, whole: int) -> None:
    with Stubber(sqs) as stub:
        body = {"QueueUrl": "u", "MessageBody": json.dumps({"sandbox_id": ID})}
        stub.add_response("send_message", {}, {**body, "DelaySeconds": whole})
        SqsQueue(sqs, {"create": "u"}).send("create", ID, seconds)
        stub.assert_no_pending_responses()


@pytest.mark.parametrize("seconds", [900.1, float("inf"), float("nan")])
def test_a_delay_over_a_quarter_of_an_hour_is_refused(sqs: Any, seconds: float) -> None:
    with pytest.raises(ValueError, match="900"):
        SqsQueue(sqs, {"create": "u"}).send("create", ID, seconds)


def test_a_queue_that_is_down_or_gone_is_busy(sqs: Any, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(StoreBusy):
        SqsQueue(sqs, {"create": "https://sqs.test/1/never-made"}).send("create", ID)
    assert "NonExistentQueue" in caplog.text


def test_a_dead_letter_is_kept(sqs: Any, urls: dict[str, str]) -> None:
    letters: DeadLetters = SqsLetters(sqs, urls["letters"])
    letters.add({"source": "outbox", "key": ["a", "b"]})
    assert received(sqs, urls["letters"]) == [{"source": "outbox", "key": ["a", "b"]}]


class Time:
    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


class Counted:
    """Secrets Manager with a count of reads, and a switch."""

    def __init__(self, client: Any) -> None:
        self._client, self.reads, self.down = client, 0, False

    def get_secret_value(self, **request: Any) -> Any:
        self.reads += 1
        if self.down:
            raise DOWN
        return self._client.get_secret_value(**request)


@pytest.fixture
def manager(account: Session) -> Any:
    return account.made("secretsmanager")


def test_a_secret_is_read_once_in_five_minutes(manager: Any) -> None:
    client, time = Counted(manager), Time()
    store, arn = SecretStore(client, time), made_secret(manager, " one\n")
    assert store.text(arn) == store.text(arn) == Secret("one")
    manager.put_secret_value(SecretId=arn, SecretString="two")
    time.seconds += 299
    assert (store.text(arn).reveal(), client.reads) == ("one", 1)
    time.seconds += 1
    assert (store.text(arn).reveal(), client.reads) == ("two", 2)
    assert "two" not in repr(vars(store))


def test_a_known_secret_outlives_its_source_and_an_unknown_one_does_not(manager: Any) -> None:
    client, time = Counted(manager), Time()
    store, arn = SecretStore(client, time), made_secret(manager, "one")
    store.text(arn)
    client.down = True
    time.seconds += 1000
    assert store.text(arn).reveal() == "one"
    with pytest.raises(Internal):
        store.text(made_secret(manager, "never read"))


@pytest.mark.parametrize("value", ["  ", b"\xff\xfe"])
def test_what_is_no_text_is_refused(manager: Any, value: str | bytes) -> None:
    with pytest.raises(Internal):
        SecretStore(manager).text(made_secret(manager, value))


def test_a_secret_that_is_not_there_is_a_fault_of_ours(manager: Any) -> None:
    with pytest.raises(Internal):
        SecretStore(manager).text("never-made")


KEYS = [f"{n}" * 64 for n in range(3)]


def rotated(manager: Any, arn: str, key: str) -> None:
    manager.put_secret_value(SecretId=arn, SecretString=key)


def test_a_vault_opens_what_was_sealed_before_a_rotation_but_not_two(manager: Any) -> None:
    arn = made_secret(manager, KEYS[0])
    sealed = SecretVault(SecretStore(manager), arn).seal(ID, {"a": Secret("1")})
    rotated(manager, arn, KEYS[1])
    after = SecretVault(SecretStore(manager), arn)
    assert after.unseal(ID, sealed) == {"a": Secret("1")}
    rotated(manager, arn, KEYS[2])
    with pytest.raises(Internal):
        SecretVault(SecretStore(manager), arn).unseal(ID, sealed)


def test_a_process_with_the_old_key_opens_what_the_new_one_sealed(manager: Any) -> None:
    client, time, arn = Counted(manager), Time(), made_secret(manager, KEYS[0])
    old = SecretVault(SecretStore(client, time), arn)
    old.seal(ID, {})
    time.seconds += 60
    rotated(manager, arn, KEYS[1])
    sealed = SecretVault(SecretStore(manager), arn).seal(ID, {"a": Secret("1")})
    assert old.unseal(ID, sealed) == {"a": Secret("1")}


def test_broken_values_do_not_ask_for_the_key_each_time(manager: Any) -> None:
    client, arn = Counted(manager), made_secret(manager, KEYS[0])
    vault = SecretVault(SecretStore(client, Time()), arn)
    for _ in range(20):
        with pytest.raises(Internal):
            vault.unseal(ID, b"never sealed by anyone")
    assert client.reads == 2  # the current version, and that there is none before


@pytest.mark.parametrize("key", [b"k" * 32, b"\xff" * 64])
def test_a_key_of_bytes_serves_too_and_a_short_one_does_not(manager: Any, key: bytes) -> None:
    vault = SecretVault(SecretStore(manager), made_secret(manager, key))
    assert vault.unseal(ID, vault.seal(ID, {"a": Secret("1")})) == {"a": Secret("1")}
    with pytest.raises(Internal):
        SecretVault(SecretStore(manager), made_secret(manager, key[:31])).seal(ID, {})


class Events:
    """EventBridge as far as PutEvents goes: each call's refused places are scripted."""

    def __init__(self, *refused: set[int] | Exception) -> None:
        self.script, self.calls = list(refused), list[list[dict[str, Any]]]()

    def put_events(self, Entries: list[dict[str, Any]]) -> dict[str, Any]:
        self.calls.append(Entries)
        now = self.script.pop(0) if self.script else set[int]()
        if isinstance(now, Exception):
            raise now
        bad = {"ErrorCode": "ThrottlingException", "ErrorMessage": "m"}
        return {
            "FailedEntryCount": len(now),
            "Entries": [bad if n in now else {"EventId": str(n)} for n in range(len(Entries))],
        }


def some(count: int, size: int = 0) -> list[Event]:
    return [Event(f"evt-{n}", "sandbox.x", 1_893_456_000_000 + n, {"n": n, "v": "x" * size})
            for n in range(count)]  # fmt: skip


def told(events: Events) -> list[list[int]]:
    return [[json.loads(entry["Detail"])["n"] for entry in call] for call in events.calls]


def test_ten_events_are_one_call_and_the_order_is_kept() -> None:
    events = Events()
    bus: Bus = EventBridge(events, "bus")
    bus.publish(some(23))
    assert told(events) == [[*range(10)], [*range(10, 20)], [20, 21, 22]]
    bus.publish([])
    assert len(events.calls) == 3


def test_a_call_stays_under_its_size() -> None:
    events = Events()
    EventBridge(events, "bus").publish(some(5, size=100_000))
    assert told(events) == [[0, 1], [2, 3], [4]]
    sizes = [sum(len(entry["Detail"]) for entry in call) for call in events.calls]
    assert max(sizes) <= MAX_BYTES


def test_only_what_was_refused_is_sent_again() -> None:
    events = Events({1, 3}, {0})
    EventBridge(events, "bus").publish(some(4))
    assert told(events) == [[0, 1, 2, 3], [1, 3], [1]]


def test_what_is_refused_again_and_again_is_for_the_caller_to_repeat() -> None:
    events = Events({0}, {0}, {0})
    with pytest.raises(StoreBusy):
        EventBridge(events, "bus").publish(some(2))
    assert told(events) == [[0, 1], [0], [0]]


def test_a_bus_that_is_down_is_busy() -> None:
    with pytest.raises(StoreBusy):
        EventBridge(Events(DOWN), "bus").publish(some(1))


def test_eventbridge_takes_an_event_as_it_is_sent(account: Session) -> None:
    client = account.made("events")
    client.create_event_bus(Name="bus")
    sent: list[str] = []
    client.meta.events.register("before-send.eventbridge", lambda request, **_: sent.append(
        request.body.decode() if isinstance(request.body, bytes) else request.body))  # fmt: skip
    EventBridge(client, "bus").publish(some(1))
    (entry,) = json.loads(sent[0])["Entries"]
    assert {k: v for k, v in entry.items() if k != "Detail"} == {
        "Time": 1893456000,
        "Source": "sandbox-router",
        "DetailType": "sandbox.x",
        "EventBusName": "bus",
    }
