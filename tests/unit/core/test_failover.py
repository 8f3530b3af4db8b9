"""Which answer of a provider leads to another pool, which does not, and when a pass is repeated."""

from __future__ import annotations

import pytest

from sandbox_router.model.failure import (
    BrokenPool,
    Capacity,
    Conflicted,
    NoPool,
    Outage,
    Permission,
    Policy,
    PoolUnsupported,
    ProviderFailure,
    Quota,
    RateLimited,
    Refused,
    Region,
    Rejected,
)
from sandbox_router.model.record import Outcome
from sandbox_router.model.sandbox import State
from sandbox_router.ports import Order
from tests.fakes.clock import START
from tests.unit.core.scenes import NO_FALLBACK, Scene, body

ELSEWHERE = [Capacity, RateLimited, Quota, Region, Outage, PoolUnsupported, BrokenPool]
FINAL = [Permission, Policy, Rejected, Conflicted, Refused, ProviderFailure]


@pytest.fixture
def scene() -> Scene:
    return Scene()


def starts(scene: Scene) -> list[tuple[str, float]]:
    """Which pool was intended when, in seconds from the start."""
    return [(a.pool_id, (a.started_at - START) / 1000) for a in scene.box().attempts]


@pytest.mark.parametrize("failure", ELSEWHERE, ids=lambda cls: cls.__name__)
def test_another_pool_is_asked_after(scene: Scene, failure: type[Refused]) -> None:
    scene.vendor().answers["create"] = [failure()]
    reply = scene.ask()
    shown = body(reply)
    assert (reply.status, shown["pool_id"]) == (201, "beta")
    assert [a["outcome"] for a in shown["attempts"]] == ["refused", "created"]
    assert shown["attempts"][0]["class"] == failure.klass
    assert len(scene.living()) == 1


@pytest.mark.case("A9")
@pytest.mark.parametrize("failure", FINAL[:-1], ids=lambda cls: cls.__name__)
def test_nobody_else_is_asked_after(scene: Scene, failure: type[Refused]) -> None:
    scene.vendor().answers["create"] = [failure()]
    reply = scene.ask()
    assert reply.status == (503 if failure in (Conflicted, Refused) else failure.status)
    assert scene.vendor("beta").calls == []
    assert scene.box().state is State.FAILED
    assert [op for op, _ in scene.vendor().calls] == ["create"]


def test_a_401_is_never_the_clients_403_not_even_when_every_pool_answers_it(scene: Scene) -> None:
    for name in ("alpha", "beta"):
        scene.vendor(name).answers["create"] = [BrokenPool()]
    reply = scene.ask()
    assert (reply.status, body(reply)["class"]) == (503, "capacity")


def test_a_broken_pool_is_out_of_routing_in_every_process_until_it_verifies(scene: Scene) -> None:
    alpha = scene.vendor()
    alpha.answers["create"] = [BrokenPool()]
    scene.made()
    assert scene.router.broken() == {"alpha"}
    scene.boot()
    assert scene.router.broken() == {"alpha"}
    alpha.answers["verify"] = [BrokenPool(), Outage()]
    scene.router.heal()
    scene.router.heal()
    assert scene.made().attempts[0].pool_id == "beta"
    scene.router.heal()
    assert scene.router.broken() == set()
    assert scene.made().attempts[0].pool_id == "alpha"


def test_another_process_hears_of_a_broken_pool_within_five_seconds(scene: Scene) -> None:
    first = scene.router
    assert first.broken() == set()
    scene.boot()
    scene.vendor().answers["create"] = [BrokenPool()]
    scene.made()
    assert first.broken() == set()
    scene.clock.sleep(5)
    assert first.broken() == {"alpha"}


@pytest.mark.parametrize("op", ["get", "destroy", "pause"])
def test_a_401_on_any_call_takes_the_pool_out_of_routing(scene: Scene, op: str) -> None:
    box = scene.made()
    scene.vendor().answers[op] = [BrokenPool()]
    if op == "get":
        scene.router.get("acme", box.id, refresh=True)
    else:
        getattr(scene.router, op)("acme", box.id)
    assert scene.router.broken() == {"alpha"}
    assert scene.seen(box.id).state in (State.RUNNING, State.DESTROYING, State.PAUSING)


def test_with_every_pool_broken_a_create_may_be_tried_again_later(scene: Scene) -> None:
    for name in ("alpha", "beta"):
        scene.vendor(name).answers["create"] = [BrokenPool()]
    scene.ask()
    with pytest.raises(NoPool) as refused:
        scene.ask()
    assert refused.value.retry_after == 30
    assert len(scene.boxes()) == 1


def test_without_fallbacks_only_the_first_pool_is_asked_pass_after_pass(scene: Scene) -> None:
    scene.vendor().script("create", *["capacity"] * 3)
    reply = scene.ask(prefer=NO_FALLBACK, wait=25)
    assert reply.status == 503
    assert starts(scene) == [("alpha", 0), ("alpha", 2), ("alpha", 6)]
    assert scene.vendor("beta").calls == []


def test_without_fallbacks_an_unknown_answer_leads_to_nobody_else() -> None:
    scene = Scene(idempotent=False)
    scene.vendor().script("create", "cut")
    assert scene.ask(prefer=NO_FALLBACK, wait=25).status == 503
    assert scene.vendor("beta").calls == []


def test_three_passes_and_no_more(scene: Scene) -> None:
    for name in ("alpha", "beta"):
        scene.vendor(name).script("create", *["capacity"] * 9)
    assert scene.ask(wait=25).status == 503
    assert starts(scene) == [(pool, at) for at in (0, 2, 6) for pool in ("alpha", "beta")]


def test_the_smallest_retry_after_of_a_pass_is_honoured_and_told(scene: Scene) -> None:
    scene.vendor("alpha").answers["create"] = [RateLimited(retry_after=7)] * 3
    scene.vendor("beta").answers["create"] = [RateLimited(retry_after=3)] * 3
    reply = scene.ask(wait=25)
    assert (reply.status, reply.retry_after) == (503, 3)
    assert starts(scene) == [(pool, at) for at in (0, 3, 6) for pool in ("alpha", "beta")]


def test_a_pass_that_would_begin_after_the_create_deadline_does_not_begin(scene: Scene) -> None:
    for name in ("alpha", "beta"):
        scene.vendor(name).answers["create"] = [RateLimited(retry_after=60)] * 3
    reply = scene.ask(ttl_seconds=45)
    assert (reply.status, reply.retry_after) == (503, 60)
    assert len(scene.box().attempts) == 2


def test_a_wait_longer_than_the_clients_goes_on_in_the_background(scene: Scene) -> None:
    scene.vendor("alpha").answers["create"] = [RateLimited(retry_after=40)]
    scene.vendor("beta").answers["create"] = [RateLimited(retry_after=50)]
    reply = scene.ask()
    assert (reply.status, reply.retry_after) == (202, 1)
    box = scene.until(State.RUNNING)
    assert starts(scene)[2:] == [("alpha", 40)]
    assert body(scene.ask()) == body(scene.ask())
    assert box.attempts[2].outcome is Outcome.CREATED


def test_final_for_this_account_is_no_reason_for_another_pass(scene: Scene) -> None:
    scene.vendor("alpha").script("create", "quota")
    scene.vendor("beta").script("create", "capacity")
    assert scene.ask().status == 503
    assert len(scene.box().attempts) == 2


def slow(scene: Scene, seconds: float) -> None:
    """Alpha takes this long to answer every create."""

    def wait(order: Order) -> None:
        scene.clock.sleep(seconds)

    scene.vendor().on_create = wait


@pytest.mark.parametrize("idempotent", [True, False])
def test_a_pool_whose_turn_comes_when_the_client_stopped_waiting_is_asked_all_the_same(
    idempotent: bool,
) -> None:
    scene = Scene(idempotent=idempotent)
    slow(scene, 3)
    scene.vendor("alpha").script("create", "capacity")
    scene.vendor("beta").script("create", "ok")
    assert scene.ask(wait=2).status == 202
    box = scene.until(State.RUNNING, seconds=5)
    assert [(a.pool_id, a.outcome) for a in box.attempts] == [
        ("alpha", Outcome.REFUSED),
        ("beta", Outcome.CREATED),
    ]


def test_a_refusal_of_a_pool_whose_turn_came_late_is_a_refusal() -> None:
    scene = Scene()
    slow(scene, 3)
    scene.vendor("alpha").script("create", "capacity")
    scene.vendor("beta").script("create", "capacity")
    assert scene.ask(wait=2).status == 202
    box = scene.until(State.RUNNING, seconds=9)
    assert [a.outcome for a in box.attempts[:2]] == [Outcome.REFUSED] * 2
    assert scene.vendor("beta").times("find") == []


@pytest.mark.parametrize("fault", ["capacity", "rate_limited", "quota", "forbidden"])
def test_a_refusal_after_a_crash_says_nothing_about_what_was_sent_before_it(fault: str) -> None:
    scene = Scene()
    scene.vendor().script("create", "ok", fault)
    scene.crash_at = 6  # the instance exists, the process dies
    assert scene.create(ttl=3600, wait=20) is None
    box = scene.until(State.RUNNING)
    assert [(a.pool_id, a.outcome) for a in box.attempts] == [("alpha", Outcome.ADOPTED)]
    assert len(scene.living()) == 1
    assert scene.vendor("beta").calls == []
