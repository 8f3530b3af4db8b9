"""Destroy: acknowledged once, done for certain, from every state; and what ends by itself."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from sandbox_router.model.failure import (
    BrokenPool,
    Conflicted,
    NotRunning,
    RateLimited,
    Unknown,
)
from sandbox_router.model.record import Outcome
from sandbox_router.model.sandbox import Sandbox, State
from sandbox_router.ports import Command, Order
from tests.fakes.clock import START
from tests.sim.world import LATE_MS, TENANT
from tests.unit.core.scenes import Scene, body


@pytest.fixture
def scene() -> Scene:
    return Scene()


def destroyed(scene: Scene, id_: str) -> Sandbox:
    return scene.router.destroy(TENANT, id_)


def ops(scene: Scene, op: str) -> int:
    return sum(name == op for vendor in ("alpha", "beta") for name, _ in scene.vendor(vendor).calls)


def starting(scene: Scene) -> str:
    return scene.ask(wait=0).record_id or ""


def running(scene: Scene) -> str:
    return scene.made().id


def paused(scene: Scene) -> str:
    return scene.router.pause(TENANT, scene.made().id).id


def destroying(scene: Scene) -> str:
    scene.vendor().answers["destroy"] = [Conflicted()]
    return destroyed(scene, scene.made().id).id


def ended(scene: Scene) -> str:
    return destroyed(scene, scene.made().id).id


def failed(scene: Scene) -> str:
    scene.vendor().script("create", "forbidden")
    return scene.ask().record_id or ""


def lost(scene: Scene) -> str:
    id_ = scene.made().id
    scene.living()[0].dead_at = scene.clock.now()
    scene.router.get(TENANT, id_, refresh=True)
    return id_


STATES: list[tuple[Callable[[Scene], str], State, State]] = [
    (starting, State.STARTING, State.DESTROYED),
    (running, State.RUNNING, State.DESTROYED),
    (paused, State.PAUSED, State.DESTROYED),
    (destroying, State.DESTROYING, State.DESTROYED),
    (ended, State.DESTROYED, State.DESTROYED),
    (failed, State.FAILED, State.FAILED),
    (lost, State.LOST, State.LOST),
]


@pytest.mark.parametrize(
    ("make", "before", "after"), STATES, ids=[make.__name__ for make, _, _ in STATES]
)
def test_a_destroy_can_be_repeated_in_every_state(
    scene: Scene, make: Callable[[Scene], str], before: State, after: State
) -> None:
    id_ = make(scene)
    assert scene.seen(id_).state is before
    for _ in range(3):
        assert destroyed(scene, id_).state in (after, State.DESTROYING)
        scene.on(2)
    assert scene.seen(id_).state is after
    calls, log = scene.calls(), len(scene.memory.items())
    assert destroyed(scene, id_).state is after
    assert (scene.calls(), len(scene.memory.items())) == (calls, log)
    assert scene.living() == []


def test_a_destroy_before_anybody_was_asked_asks_nobody(scene: Scene) -> None:
    assert destroyed(scene, starting(scene)).state is State.DESTROYED
    scene.on(60)
    assert scene.calls() == 0


@pytest.mark.case("A4")
def test_a_destroy_that_the_provider_refuses_is_repeated_until_it_is_done(scene: Scene) -> None:
    """A4: 401, 429, a timeout, then done."""
    id_ = running(scene)
    scene.vendor().answers["destroy"] = [BrokenPool(), RateLimited(retry_after=2), Unknown()]
    assert destroyed(scene, id_).state is State.DESTROYING
    scene.on(1)
    assert destroyed(scene, id_).state is State.DESTROYING
    box = scene.until(State.DESTROYED, seconds=10)
    assert ops(scene, "destroy") == 4
    assert scene.living() == []
    assert box.attempts[0].outcome is Outcome.GONE


@pytest.mark.case("A4")
def test_an_instance_the_provider_does_not_know_is_gone_at_once(scene: Scene) -> None:
    id_ = running(scene)
    scene.living()[0].dead_at = scene.clock.now()
    assert destroyed(scene, id_).state is State.DESTROYED
    assert ops(scene, "destroy") == 1


def test_it_is_destroyed_only_when_a_look_confirms_it(scene: Scene) -> None:
    id_ = running(scene)
    scene.vendor().stubborn = 2  # accepted, and not done
    assert destroyed(scene, id_).state is State.DESTROYING
    scene.until(State.DESTROYED, seconds=10)
    assert scene.vendor().times("destroy") == [START, START + 1000, START + 2000]


def test_a_confirming_look_that_fails_confirms_nothing(scene: Scene) -> None:
    id_ = running(scene)
    scene.vendor().script("get", "cut", "rate_limited")
    assert destroyed(scene, id_).state is State.DESTROYING
    scene.until(State.DESTROYED, seconds=10)
    assert ops(scene, "get") == 3


@pytest.mark.case("A5")
def test_a_provider_that_refuses_to_destroy_what_starts_is_asked_until_it_does(
    scene: Scene,
) -> None:
    """A5: still booting when its ttl of 60 s ends, and not to be destroyed for five minutes."""
    scene.vendor().boots_ms = 10**7
    scene.vendor().answers["destroy"] = [Conflicted()] * 11
    assert scene.ask(ttl_seconds=90).status == 202
    scene.on(91)
    box = scene.box()
    assert (box.state, box.state_reason, box.settled) == (State.DESTROYING, "expired", False)
    with pytest.raises(NotRunning):
        scene.router.run(TENANT, box.id, Command(shell="true"))
    scene.living()[0].ends_at += 10**7  # the vendor's own limit does not help
    scene.on(230)
    assert scene.box().state is State.DESTROYING
    scene.until(State.DESTROYED, seconds=125)
    times = scene.vendor().times("destroy")
    assert len(times) == 12
    assert max(b - a for a, b in itertools.pairwise(times)) <= 60_000


@pytest.mark.case("A6")
def test_a_destroy_during_the_create_wins_and_leaves_nothing(scene: Scene) -> None:
    """A6 (b): the create succeeds after the wish; it answers 409 and never shows running."""

    def wish(order: Order) -> None:
        destroyed(scene, scene.box().id)

    scene.vendor().on_create = wish
    reply = scene.ask()
    assert (reply.status, body(reply)["code"], body(reply)["outcome"]) == (409, "destroyed", "done")
    scene.until(State.DESTROYED, seconds=5)
    assert scene.living() == []
    states = [i["state"] for i in scene.memory.items() if i.get("event") == "state"]
    assert states == ["destroying", "destroyed"]
    assert scene.ask().body == reply.body


@pytest.mark.case("A6")
def test_a_destroy_outlives_the_process_that_acknowledged_it(scene: Scene) -> None:
    """A6 (a): the process dies right after the wish is stored."""
    id_ = running(scene)
    scene.crash_at = scene.ticks + 3  # load, write, its acknowledgement
    scene.destroy(id_)
    assert scene.crashes == 1
    assert len(scene.living()) == 1
    scene.until(State.DESTROYED, seconds=125)
    assert scene.living() == []


def test_a_destroy_while_a_dead_worker_holds_the_record_is_done_when_its_lease_is_over(
    scene: Scene,
) -> None:
    scene.crash_at = 6
    scene.create(ttl=3600)
    box = scene.box()
    assert destroyed(scene, box.id).wish_destroy is not None
    assert len(scene.living()) == 1
    scene.run_until(box.lease_until + 1_000)
    assert scene.box().state in (State.DESTROYING, State.DESTROYED)
    scene.until(State.DESTROYED, seconds=60)
    assert scene.living() == []


@pytest.mark.parametrize("state", [State.RUNNING, State.PAUSED])
def test_the_deadline_ends_it_in_every_state_on_time_and_not_before(
    scene: Scene, state: State
) -> None:
    id_ = scene.made(ttl_seconds=90).id
    if state is State.PAUSED:
        scene.router.pause(TENANT, id_)
    scene.on(89.9)
    assert scene.seen(id_).state is state
    scene.until(State.DESTROYED, seconds=5)
    assert scene.box().state_reason == "expired"
    (vendor,) = scene.vendor().boxes.values()
    assert 90_000 <= (vendor.dead_at or 0) - START <= 90_000 + LATE_MS


def test_the_deadline_ends_a_create_that_still_waits_for_the_provider(scene: Scene) -> None:
    scene.vendor().boots_ms = 10**7
    assert scene.ask(ttl_seconds=40).status == 202
    scene.until(State.DESTROYED, seconds=50)
    assert scene.living() == []
    assert (scene.ask(ttl_seconds=40).status, scene.box().started_at) == (409, None)


def test_what_never_became_ready_fails_at_the_create_deadline_and_is_destroyed(
    scene: Scene,
) -> None:
    scene.vendor().boots_ms = 10**7
    assert scene.ask(ttl_seconds=3600).status == 202
    scene.until(State.FAILED, seconds=610)
    scene.on(5)
    assert scene.living() == []
    assert scene.box().settled


def test_it_is_not_running_before_the_provider_says_ready(scene: Scene) -> None:
    scene.vendor().boots_ms = 3_000
    reply = scene.ask()
    assert (reply.status, body(reply)["state"]) == (201, "running")
    assert scene.clock.now() >= START + 3_000
    assert scene.box().started_at == scene.clock.now()


def test_an_instance_that_vanished_before_it_was_ready_leads_to_the_next_pool(scene: Scene) -> None:
    scene.vendor().boots_ms = 10**7
    scene.vendor().script("create", "ok")
    assert scene.ask(wait=1).status == 202
    scene.living()[0].dead_at = scene.clock.now()
    box = scene.until(State.RUNNING, seconds=5)
    assert [(a.pool_id, a.outcome) for a in box.attempts] == [
        ("alpha", Outcome.GONE),
        ("beta", Outcome.CREATED),
    ]


@pytest.mark.parametrize("op", ["pause", "extend", "relabel", "run", "read_file", "open_port"])
def test_nothing_else_is_done_while_it_is_being_destroyed(scene: Scene, op: str) -> None:
    id_ = destroying(scene)
    calls = scene.calls()
    arguments: dict[str, tuple[object, ...]] = {
        "pause": (),
        "extend": (60,),
        "run": (Command(shell="true"),),
        "read_file": ("/a", 1),
        "open_port": (80,),
        "relabel": ({"a": "b"},),
    }
    if op == "relabel":  # labels are ours, and change no instance
        assert scene.router.relabel(TENANT, id_, {"a": "b"}).labels == {"a": "b"}
        return
    extra = {"shorten": False} if op == "extend" else {}
    with pytest.raises(NotRunning):
        getattr(scene.router, op)(TENANT, id_, *arguments[op], **extra)
    assert scene.calls() == calls


def test_what_is_wished_away_serves_nobody_though_a_dead_worker_still_holds_it(
    scene: Scene,
) -> None:
    id_ = running(scene)
    scene.crash_at = scene.ticks + 6  # a look dies holding the claim
    assert scene.guarded(lambda: scene.router.get(TENANT, id_, refresh=True)) is None
    assert destroyed(scene, id_).state is State.RUNNING
    with pytest.raises(NotRunning, match="destroying"):
        scene.router.run(TENANT, id_, Command(shell="true"))


@pytest.mark.case("A11")
def test_a_lease_always_ends_within_fifteen_minutes(scene: Scene) -> None:
    """A11, at every port call of a life with crashes."""
    seen: set[int] = set()

    def watch(point: str) -> None:
        for item in scene.memory.items():
            lease, now = item.get("lease_until", 0), scene.clock.now()
            if item.get("nonce") is not None:
                assert isinstance(lease, int)
                assert lease <= now + 900_000
                assert lease > 0
                seen.add(lease)

    scene.watch = watch
    for crash in (6, 9, 3):
        scene.crash_at = scene.ticks + crash
        scene.create(f"k{crash}", ttl=60)
        scene.on(40)
    scene.settle()
    assert len(seen) >= 4


def test_a_call_to_a_destroyed_sandbox_says_destroyed(scene: Scene) -> None:
    id_ = running(scene)
    assert destroyed(scene, id_).state is State.DESTROYED
    with pytest.raises(NotRunning, match="is destroyed"):
        scene.router.run(TENANT, id_, Command(shell="true"))
