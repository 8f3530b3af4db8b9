"""Clients at work while DynamoDB and SQS throttle, cut, are late and lose their answers; in the
second half functions are killed too. What they saw is checked as the simulation's histories are.
"""

from __future__ import annotations

import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain

import httpx
import pytest

from tests.cloud.e2e.conftest import Say
from tests.cloud.e2e.deployment import Cloud
from tests.cloud.e2e.faults import Fired, Rule
from tests.cloud.e2e.watched import Watched
from tests.local.clients import Load
from tests.sim.history import check

WARM = Load(clients=5, seconds=4.0)
LOAD = Load(clients=5, seconds=12.0, keys=3, goes_away=0.1, patience=0.08, destroys=0.03, ttl=45)
KILLED = ("create_sandbox", "advance", "destroy_sandbox")
KILL_SECONDS = 2.0
"""Long enough for the emulator to start another: a killed start is a 502 for nothing."""

THROTTLED = {"error": {"code": "ProvisionedThroughputExceededException"}}
CONFLICT = {
    "error": {
        "code": "TransactionCanceledException",
        "fields": {"CancellationReasons": [{"Code": "TransactionConflict"}] * 3},
    }
}
CUT, LOST = {"reset": True}, {"response": {"abort_frac": 0.0}}
LATE = {"latency": {"min": 20, "max": 200}}
TOO_LATE = {"latency": 2500}
"""Longer than we wait for the table: it is written when nobody waits any more."""
TRANSACT = {"service": "dynamodb", "operation": "TransactWriteItems"}
SEND = {"service": "sqs", "operation": "SendMessage"}
ANY = {"service": "dynamodb"}
STORM: list[Rule] = [
    {**TRANSACT, **CONFLICT, "probability": 0.1},
    {**TRANSACT, **LOST, "probability": 0.08},
    {**TRANSACT, **TOO_LATE, "sequence": {"fail": 1, "pass": 60}},
    {**ANY, **THROTTLED, "probability": 0.06},
    {**ANY, **CUT, "probability": 0.04},
    {**ANY, **LOST, "probability": 0.04},
    {**ANY, **LATE, "probability": 0.2},
    {**SEND, "error": {"code": "ThrottlingException"}, "sequence": {"fail": 1, "pass": 5}},
    {**SEND, **CUT, "sequence": {"fail": 1, "pass": 5}},
    {**SEND, **LOST, "sequence": {"fail": 1, "pass": 4}},
]
MUST_FIRE = {
    ("dynamodb", "error:ProvisionedThroughputExceededException"),
    ("dynamodb", "error:TransactionCanceledException"),
    ("dynamodb", "latency"),
    ("dynamodb", "reset"),
    ("dynamodb", "response:abort"),
    ("sqs", "error:ThrottlingException"),
    ("sqs", "reset"),
    ("sqs", "response:abort"),
}


@dataclass(frozen=True)
class Aftermath:
    """What is left of the storm. calm, wild: failures without and with kills."""

    watched: Watched
    fired: Fired
    calm: list[httpx.Response]
    wild: list[httpx.Response]
    kills: int


@contextmanager
def killer(cloud: Cloud) -> Iterator[list[int]]:
    """Somebody who kills a function at work every moment; whom is there in the end."""
    over, killed, chance = threading.Event(), list[int](), random.Random(1)

    def kill() -> None:
        while not over.wait(KILL_SECONDS):
            running = list(chain.from_iterable(cloud.workers(name) for name in KILLED))
            if running:
                killed.append(chance.choice(running))
                with suppress(ProcessLookupError):
                    os.kill(killed[-1], signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield killed
    finally:
        over.set()
        thread.join()


@pytest.fixture(scope="module")
def aftermath(cloud: Cloud) -> Aftermath:
    """Clients in the storm, first without kills; then it heals, and everybody asks once more."""
    warm = Watched(cloud, WARM)
    warm.clients.run()
    for id_ in warm.clients.ids:
        cloud.destroy(id_)
    watched = Watched(cloud, LOAD)
    clients = watched.clients
    with cloud.emulator.faults.storm(STORM) as fired:
        clients.run("calm")
        calm = len(clients.failures)
        with killer(cloud) as killed:
            clients.run("wild")
    failures = list(clients.failures)
    clients.ask_again()
    return Aftermath(watched, fired, failures[:calm], failures[calm:], len(killed))


def test_every_kind_of_fault_fired(aftermath: Aftermath, say: Say) -> None:
    kinds: Counter[tuple[str, str]] = Counter()
    for (service, _, action), many in aftermath.fired.items():
        kinds[service, action] += many
    say(f"{kinds.total()} faults fired: {dict(kinds)}; {aftermath.kills} kills")
    assert set(kinds) == MUST_FIRE
    assert aftermath.kills >= 3


def test_what_clients_saw_is_what_the_router_promises(aftermath: Aftermath, say: Say) -> None:
    watched, clients = aftermath.watched, aftermath.watched.clients
    boxes = watched.settled()
    living = chain.from_iterable(watched.made().values())
    clients.saw(boxes, [one for one in living if one["gone_at"] is None])
    check(clients.history)
    ends = Counter((e.op, e.kind, e.status) for e in clients.history)
    say(f"{len(clients.keys)} keys, {len(boxes)} sandboxes: {dict(ends)}")
    assert len(boxes) >= LOAD.keys * LOAD.seconds / 3
    for seen in (("create", "ok", 201), ("create", "fail", 422)):
        assert ends[seen] > 0, f"never {seen}"


def test_a_failure_is_one_to_come_again_with(aftermath: Aftermath, say: Say) -> None:
    """A 502 is the emulator's own, for a function that was killed or did not start."""
    assert [one.text for one in aftermath.calm if not is_ours(one)] == []
    wild = [one for one in aftermath.wild if not is_ours(one)]
    ours = len(aftermath.calm) + len(aftermath.wild) - len(wild)
    say(f"{ours} times 503; {len(wild)} times 502, by {aftermath.kills} kills")
    assert {one.status_code for one in wild} <= {502}
    assert [one.text for one in wild if "errorMessage" not in one.text] == []


def is_ours(answer: httpx.Response) -> bool:
    """Is it the contract's 503, which may come again?"""
    if (answer.status_code, answer.headers["content-type"]) != (503, "application/problem+json"):
        return False
    return answer.json()["retryable"] is True


def test_no_key_has_two_instances_and_none_is_left_after_its_lifetime(
    aftermath: Aftermath, say: Say
) -> None:
    watched = aftermath.watched
    late = watched.over()
    made = watched.made()
    say(
        f"{len(made)} sandboxes had {sum(map(len, made.values()))} instances;"
        f" {len(late)} lived to the end, the last {max(late.values()):.1f} s longer"
    )
    assert {id_: many for id_, many in made.items() if len(many) > 1} == {}
    assert set(made) <= watched.clients.ids, "an instance no key leads to"


def test_a_key_that_cannot_be_looked_up_now_is_for_later(cloud: Cloud) -> None:
    key = cloud.add_key("stranger")  # nobody has admitted it yet
    headers = {"Authorization": f"Bearer {key}"}
    with cloud.emulator.faults.storm([{**ANY, "operation": "GetItem", **THROTTLED}]) as fired:
        answer = cloud.api.get("/v1/sandboxes", headers=headers)
    assert sum(fired.values()) > 0
    assert is_ours(answer), answer.text
    assert cloud.api.get("/v1/sandboxes", headers=headers).status_code == 200
