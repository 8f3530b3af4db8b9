"""A create whose answer is lost: asked again, looked up, given up after twenty seconds, watched."""

from __future__ import annotations

import itertools

import pytest

from sandbox_router.model.failure import RateLimited, Unknown
from sandbox_router.model.record import Outcome
from sandbox_router.model.sandbox import State
from tests.fakes.clock import START
from tests.sim.world import TENANT
from tests.unit.core.scenes import Scene, Vendor, body

WINDOW, SETTLE = 600, 20


def seconds(vendor: Vendor, op: str) -> list[float]:
    """When an operation was called, in seconds from the start."""
    return [(at - START) / 1000 for at in vendor.times(op)]


@pytest.fixture
def named() -> Scene:
    """Vendors that honour an identity."""
    return Scene()


@pytest.fixture
def scene() -> Scene:
    """Vendors that do not."""
    return Scene(idempotent=False)


@pytest.mark.parametrize("fault", ["lost", "cut"])
def test_where_an_identity_is_honoured_it_is_asked_again_at_once(named: Scene, fault: str) -> None:
    named.vendor().script("create", fault)
    reply = named.ask()
    assert (reply.status, body(reply)["pool_id"]) == (201, "alpha")
    assert seconds(named.vendor(), "create") == [0, 0]
    assert len({subject for _, subject in named.vendor().calls}) == 1
    assert len(named.living()) == 1
    assert body(reply)["attempts"][0]["outcome"] == "adopted"


def test_it_is_asked_twice_and_then_only_looked_up(named: Scene) -> None:
    named.vendor().script("create", "cut", "cut")
    reply = named.ask(wait=25)
    assert seconds(named.vendor(), "create") == [0, 0]
    assert seconds(named.vendor(), "find")[0] == 5
    assert body(reply)["pool_id"] == "beta"


def test_a_refused_repeat_says_nothing_about_the_first(named: Scene) -> None:
    named.vendor().answers["create"] = [Unknown(), RateLimited()]
    named.ask(wait=25)
    assert named.box().attempts[0].outcome is Outcome.UNKNOWN
    assert named.box().attempts[0].code == "unknown_outcome"


def test_where_no_identity_is_honoured_it_is_looked_up_at_once(scene: Scene) -> None:
    scene.vendor().script("create", "lost")
    reply = scene.ask()
    assert (reply.status, body(reply)["pool_id"]) == (201, "alpha")
    assert seconds(scene.vendor(), "create") == seconds(scene.vendor(), "find") == [0]


def test_a_look_up_waits_for_the_list_to_catch_up() -> None:
    scene = Scene(idempotent=False, lag_ms=8_000)
    scene.vendor().script("create", "lost")
    reply = scene.ask()
    assert (reply.status, body(reply)["pool_id"]) == (201, "alpha")
    assert seconds(scene.vendor(), "find") == [0, 8]


def test_a_failing_look_up_is_no_answer_and_is_repeated(scene: Scene) -> None:
    scene.vendor().script("create", "lost")
    scene.vendor().script("find", "cut", "unauthorized")
    reply = scene.ask()
    assert body(reply)["pool_id"] == "alpha"
    assert (
        seconds(scene.vendor(), "find") == [0, 5, 10, 20 - 0.0][: len(scene.vendor().times("find"))]
    )


def test_after_twenty_seconds_the_next_pool_is_asked_and_the_debt_watched(scene: Scene) -> None:
    scene.vendor().script("create", "cut")
    reply = scene.ask(wait=25)
    assert (reply.status, body(reply)["pool_id"]) == (201, "beta")
    assert seconds(scene.vendor("beta"), "create") == [SETTLE]
    assert seconds(scene.vendor(), "find") == [0, 5, 10, 20]
    box = scene.box()
    assert (box.attempts[0].outcome, box.state) == (Outcome.UNKNOWN, State.RUNNING)
    assert box.due_at == START + 30_000


def test_a_debt_is_looked_up_ever_more_rarely_until_its_window_closes(scene: Scene) -> None:
    scene.vendor().script("create", "cut")
    scene.ask(wait=25)
    scene.on(WINDOW + 60)
    looks = seconds(scene.vendor(), "find")
    gaps = [b - a for a, b in itertools.pairwise(looks)]
    assert looks[-1] >= WINDOW
    assert all(gap <= 31 for gap in gaps)
    assert len(looks) <= 30
    first, second = scene.box().attempts
    assert (first.outcome, second.outcome) == (Outcome.GONE, Outcome.CREATED)
    assert scene.box().state is State.RUNNING


def test_a_window_is_not_closed_by_a_look_that_failed(scene: Scene) -> None:
    scene.vendor().script("create", "cut")
    scene.ask(wait=25)
    scene.on(WINDOW - 30)
    scene.vendor().script("find", *["cut"] * 4)
    scene.on(60)
    assert scene.box().attempts[0].outcome is Outcome.UNKNOWN
    scene.on(180)
    assert scene.box().attempts[0].outcome is Outcome.GONE


def test_a_debt_that_appears_is_destroyed_and_never_handed_out(scene: Scene) -> None:
    scene.vendor().script("create", "late")  # 45 s
    reply = scene.ask(wait=25)
    assert body(reply)["pool_id"] == "beta"
    scene.on(45 + 31)
    (late,) = scene.vendor().boxes.values()
    assert late.deleted_by_us
    box = scene.box()
    assert (box.server or box.attempts[0]).pool_id == "beta"
    assert box.attempts[0].outcome is Outcome.GONE
    assert [len(scene.vendor(n).living()) for n in ("alpha", "beta")] == [0, 1]


def test_an_unknown_create_that_appears_while_it_settles_is_the_sandbox(scene: Scene) -> None:
    scene.vendor().late_ms = 8_000
    scene.vendor().script("create", "late")
    reply = scene.ask(wait=25)
    assert (reply.status, body(reply)["pool_id"]) == (201, "alpha")
    assert scene.vendor("beta").calls == []


def test_a_destroy_while_a_create_settles_waits_for_it_and_then_watches(scene: Scene) -> None:
    scene.vendor().script("create", "late")
    assert scene.ask(wait=2).status == 202
    assert scene.router.destroy(TENANT, scene.box().id).state is State.DESTROYING
    scene.on(10)
    assert scene.box().state is State.DESTROYING
    scene.on(11)
    assert scene.box().state is State.DESTROYED
    assert not scene.box().settled
    scene.on(60)
    (late,) = scene.vendor().boxes.values()
    assert late.deleted_by_us
    assert scene.box().settled
    assert scene.vendor("beta").calls == []


def test_a_crash_after_the_intent_is_an_unknown_outcome_and_asks_under_the_same_name() -> None:
    scene = Scene()
    scene.crash_at = 5  # before the provider was called
    assert scene.create(ttl=3600) is None
    box = scene.until(State.RUNNING)
    assert len(box.attempts) == 1
    assert {subject for op, subject in scene.vendor().calls if op == "create"} == {
        box.attempts[0].identity
    }


def test_without_its_secrets_an_interrupted_create_is_only_looked_up() -> None:
    scene = Scene()
    scene.crash_at = 6  # booted, then the process dies with the secrets in memory
    assert scene.create(ttl=3600, env=True) is None
    box = scene.until(State.RUNNING)
    assert [op for op, _ in scene.vendor().calls] == ["create", "find"]
    assert box.attempts[0].outcome is Outcome.ADOPTED


def test_without_its_secrets_nobody_else_is_asked_until_the_client_brings_them_again() -> None:
    scene = Scene(idempotent=False)
    scene.vendor().script("create", "cut")
    scene.crash_at = 6
    assert scene.create(ttl=3600, env=True) is None
    scene.on(120)
    assert (scene.box().state, scene.vendor("beta").calls) == (State.STARTING, [])
    again = scene.create(ttl=3600, env=True)
    assert again is not None
    assert (again.status, body(again)["pool_id"]) == (201, "beta")


def test_without_its_secrets_it_fails_at_the_create_deadline() -> None:
    scene = Scene(idempotent=False)
    scene.vendor().script("create", "cut")
    scene.crash_at = 6
    assert scene.create(ttl=3600, env=True) is None
    scene.until(State.FAILED, seconds=610)
    assert scene.clock.now() >= START + WINDOW * 1000
