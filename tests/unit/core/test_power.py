"""Pause, resume, extend: what the provider is told, what the record keeps, and what it costs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sandbox_router.model.capability import Lifetime
from sandbox_router.model.failure import (
    Conflicted,
    Failure,
    Gone,
    Invalid,
    NotRunning,
    NotRunningYet,
    Permission,
    RateLimited,
    Unknown,
    Unsupported,
)
from sandbox_router.model.sandbox import State
from sandbox_router.model.view import sandbox_view
from sandbox_router.ports import Provider
from tests.fakes.clock import START
from tests.sim.world import LATE_MS, TENANT
from tests.unit.core.scenes import Scene


@pytest.fixture
def scene() -> Scene:
    return Scene()


class Plain:
    """An account that can neither pause nor extend: the port itself and no more."""

    def __init__(self, inner: Provider) -> None:
        for name in ("verify", "create", "find", "get", "destroy", "instances"):
            setattr(self, name, getattr(inner, name))


def plain(scene: Scene) -> None:
    inner = scene.vendor()
    scene.providers["alpha"] = Plain(inner)  # type: ignore[assignment]


def extended(scene: Scene, id_: str, seconds: int, *, shorten: bool = False) -> int:
    return scene.router.extend(TENANT, id_, seconds, shorten=shorten).expires_at


@pytest.mark.case("A8")
def test_a_resume_tells_the_provider_the_time_that_is_left(scene: Scene) -> None:
    """A8: 1800 s asked, paused at 600 s, resumed at 900 s."""
    box = scene.made(ttl_seconds=1800)
    scene.on(600)
    assert scene.router.pause(TENANT, box.id).state is State.PAUSED
    scene.on(300)
    resumed = scene.router.resume(TENANT, box.id)
    assert scene.vendor().lifetimes == [("resume", 900 + 60)]
    assert (resumed.state, resumed.expires_at) == (State.RUNNING, box.expires_at)
    scene.on(890)
    assert len(scene.living()) == 1
    scene.settle()
    (vendor,) = scene.vendor().boxes.values()
    assert box.expires_at <= (vendor.dead_at or 0) <= box.expires_at + LATE_MS


def test_a_resume_never_asks_for_more_than_the_pool_allows(scene: Scene) -> None:
    scene.pools._pools[0] = replace(scene.pools._pools[0], max_ttl=100)
    box = scene.made(ttl_seconds=100)
    scene.router.pause(TENANT, box.id)
    scene.router.resume(TENANT, box.id)
    assert scene.vendor().lifetimes == [("resume", 100)]


def test_pause_and_resume_can_be_repeated_and_are_done_once(scene: Scene) -> None:
    id_ = scene.made().id
    for _ in range(2):
        paused = scene.router.pause(TENANT, id_, "disk")
        assert (paused.state, paused.kept) == (State.PAUSED, "disk")
    for _ in range(2):
        assert scene.router.resume(TENANT, id_).state is State.RUNNING
    assert [op for op, _ in scene.vendor().calls] == ["create", "pause", "resume"]


@pytest.mark.parametrize("verb", ["pause", "resume"])
@pytest.mark.parametrize("fault", ["lost", "cut"])
def test_a_lost_answer_is_asked_again_until_it_is_known(
    scene: Scene, verb: str, fault: str
) -> None:
    id_ = scene.made().id
    if verb == "resume":
        scene.router.pause(TENANT, id_)
    scene.vendor().script(verb, fault, fault)
    between, after = (
        (State.PAUSING, State.PAUSED) if verb == "pause" else (State.RESUMING, State.RUNNING)
    )
    assert getattr(scene.router, verb)(TENANT, id_).state is between
    scene.until(after, seconds=10)
    assert len(scene.vendor().times(verb)) == 3


@pytest.mark.parametrize("failure", [Conflicted, RateLimited, Permission])
def test_a_refused_pause_leaves_it_running_and_says_why(
    scene: Scene, failure: type[Conflicted]
) -> None:
    id_ = scene.made().id
    scene.vendor().answers["pause"] = [failure()]
    with pytest.raises(failure):
        scene.router.pause(TENANT, id_)
    assert scene.seen(id_).state is State.RUNNING
    assert scene.router.pause(TENANT, id_).state is State.PAUSED


def test_a_pause_under_way_is_not_answered_with_an_earlier_failure(scene: Scene) -> None:
    id_ = scene.made().id
    scene.vendor().answers["pause"] = [Conflicted(), Unknown()]
    with pytest.raises(Conflicted):
        scene.router.pause(TENANT, id_)
    assert scene.router.pause(TENANT, id_).state is State.PAUSING
    scene.until(State.PAUSED, seconds=5)


def test_an_extension_behind_a_dead_workers_claim_is_not_answered_with_an_earlier_failure(
    scene: Scene,
) -> None:
    id_ = scene.made().id
    scene.vendor().answers["pause"] = [Conflicted()]
    with pytest.raises(Conflicted):
        scene.router.pause(TENANT, id_)
    scene.crash_at = scene.ticks + 6  # a look dies holding the claim
    assert scene.guarded(lambda: scene.router.get(TENANT, id_, refresh=True)) is None
    assert scene.seen(id_).lease_until > scene.clock.now()
    assert extended(scene, id_, 7200) == scene.seen(id_).expires_at
    scene.on(32)
    assert scene.seen(id_).expires_at == START + 7_200_000


def test_a_pause_nobody_can_confirm_goes_back_to_running_and_says_unknown(scene: Scene) -> None:
    id_ = scene.made().id
    scene.vendor().script("pause", *["cut"] * 5)
    scene.router.pause(TENANT, id_)
    scene.until(State.RUNNING, seconds=30)
    assert scene.box().power_code == "unknown_outcome"


def test_a_resume_of_what_the_provider_lost_makes_nothing_new(scene: Scene) -> None:
    id_ = scene.made().id
    scene.router.pause(TENANT, id_)
    scene.living()[0].dead_at = scene.clock.now()
    with pytest.raises(Gone):
        scene.router.resume(TENANT, id_)
    assert scene.seen(id_).state is State.LOST
    assert [op for op, _ in scene.vendor().calls].count("create") == 1


def test_what_a_provider_cannot_do_is_unsupported_before_it_is_asked(scene: Scene) -> None:
    id_, calls = scene.made().id, scene.vendor().calls
    with pytest.raises(Unsupported):
        scene.router.pause(TENANT, id_, "nothing")
    plain(scene)
    with pytest.raises(Unsupported):
        scene.router.pause(TENANT, id_)
    with pytest.raises(Unsupported):
        extended(scene, id_, 9999)
    assert [op for op, _ in calls] == ["create"]


@pytest.mark.parametrize("verb", ["pause", "resume"])
def test_what_has_not_started_can_be_tried_again_soon_and_what_has_ended_cannot(
    scene: Scene, verb: str
) -> None:
    id_ = scene.ask(wait=0).record_id or ""
    with pytest.raises(NotRunningYet) as soon:
        getattr(scene.router, verb)(TENANT, id_)
    assert soon.value.retry_after == 1
    scene.router.destroy(TENANT, id_)
    with pytest.raises(NotRunning) as ended:
        getattr(scene.router, verb)(TENANT, id_)
    assert type(ended.value) is NotRunning


def test_an_extension_moves_the_providers_limit_then_ours(scene: Scene) -> None:
    id_ = scene.made(ttl_seconds=600).id
    scene.on(100)
    assert extended(scene, id_, 3600) == scene.clock.now() + 3_600_000
    assert scene.vendor().lifetimes == [("extend", 3660)]
    events = [i["event"] for i in scene.memory.items() if str(i["pk"]).startswith("LOG")]
    assert "wish.extend" in events


def test_a_deadline_is_shortened_only_on_purpose(scene: Scene) -> None:
    id_ = scene.made(ttl_seconds=600).id
    with pytest.raises(Invalid):
        extended(scene, id_, 599)
    assert scene.seen(id_).expires_at == START + 600_000
    assert extended(scene, id_, 60, shorten=True) == START + 60_000
    scene.until(State.DESTROYED, seconds=65)


def test_a_deadline_can_be_shortened_where_the_provider_cannot_be_told(scene: Scene) -> None:
    id_ = scene.made(ttl_seconds=600).id
    plain(scene)
    assert extended(scene, id_, 60, shorten=True) == START + 60_000


def test_no_deadline_goes_beyond_what_the_pool_allows(scene: Scene) -> None:
    id_ = scene.made(ttl_seconds=600).id
    with pytest.raises(Unsupported) as refused:
        extended(scene, id_, 86_401)
    assert refused.value.fields == (("ttl_seconds", "this pool allows at most 86400"),)
    assert extended(scene, id_, 86_400) == START + 86_400_000
    assert scene.vendor().lifetimes == [("extend", 86_400)]


@pytest.mark.parametrize("failure", [Conflicted, Permission, RateLimited])
def test_a_refused_extension_moves_nothing_and_says_why(
    scene: Scene, failure: type[Failure]
) -> None:
    id_ = scene.made(ttl_seconds=600).id
    scene.vendor().answers["extend"] = [failure()]  # type: ignore[list-item]
    with pytest.raises(failure):
        extended(scene, id_, 3600)
    assert scene.seen(id_).expires_at == START + 600_000


def test_an_extension_whose_answer_is_lost_is_asked_again_for_the_same_moment(
    scene: Scene,
) -> None:
    id_ = scene.made(ttl_seconds=600).id
    scene.vendor().script("extend", "lost", "cut")
    assert extended(scene, id_, 3600) == START + 600_000  # not yet
    scene.on(4)
    assert scene.seen(id_).expires_at == START + 3_600_000
    assert [told for _, told in scene.vendor().lifetimes] == [3660, 3659, 3657]


def test_every_extension_is_asked_as_often_as_the_first(scene: Scene) -> None:
    id_ = scene.made(ttl_seconds=600).id
    for ttl in (3600, 7200):
        scene.vendor().script("extend", *["cut"] * 4)
        extended(scene, id_, ttl)
        scene.on(16)
    assert scene.seen(id_).expiry_code is None
    assert len(scene.vendor().lifetimes) == 10


def test_an_extension_that_finds_the_instance_gone_leads_to_lost(scene: Scene) -> None:
    id_ = scene.made(ttl_seconds=600).id
    scene.living()[0].dead_at = scene.clock.now()
    with pytest.raises(Gone):
        extended(scene, id_, 3600)
    scene.on(1)
    assert scene.seen(id_).state is State.LOST


@pytest.mark.parametrize("acts", [True, False])
def test_a_paused_instance_is_told_of_an_extension_at_once_or_when_it_resumes(
    scene: Scene, acts: bool
) -> None:
    pool = scene.pools._pools[0]
    lifetime = Lifetime(86_400, acts_on_paused=acts, extends=True)
    scene.pools._pools[0] = replace(pool, profile=replace(pool.profile, lifetime=lifetime))
    id_ = scene.made(ttl_seconds=600).id
    scene.router.pause(TENANT, id_)
    assert extended(scene, id_, 3600) == START + 3_600_000
    assert scene.vendor().lifetimes == ([("extend", 3660)] if acts else [])
    scene.router.resume(TENANT, id_)
    assert scene.vendor().lifetimes[-1] == ("resume", 3660)


def test_what_the_provider_stopped_is_paused_and_what_it_started_runs(scene: Scene) -> None:
    id_ = scene.made().id
    (vendor,) = scene.living()
    vendor.state = "stopped"
    stopped = scene.router.get(TENANT, id_, refresh=True)
    assert (stopped.state, stopped.state_reason) == (State.PAUSED, "provider_stopped")
    vendor.state = "running"
    started = scene.router.get(TENANT, id_, refresh=True)
    assert (started.state, started.state_reason) == (State.RUNNING, "provider_started")


def test_what_the_provider_calls_failed_is_failed_and_destroyed(scene: Scene) -> None:
    id_ = scene.made().id
    scene.living()[0].state = "failed"
    seen = scene.router.get(TENANT, id_, refresh=True)
    assert (seen.state, seen.state_reason) == (State.FAILED, "provider_failed")
    assert scene.living() == []


def test_a_pause_stops_the_meter_and_a_resume_goes_on_from_there(scene: Scene) -> None:
    id_ = scene.made(ttl_seconds=7200).id
    per_hour = 165_600  # 2 x 50,400 + 4 x 16,200 micro-units

    def cost() -> float:
        shown = sandbox_view(scene.seen(id_), scene.clock.now())["cost"]
        return round(float(shown["estimated"]) * 1_000_000 / per_hour * 60, 2)  # minutes

    scene.on(600)
    assert cost() == 10
    scene.router.pause(TENANT, id_)
    scene.on(600)
    assert cost() == 10
    scene.router.resume(TENANT, id_)
    assert cost() == 10
    scene.on(300)
    assert cost() == 15
    scene.router.destroy(TENANT, id_)
    scene.on(600)
    assert cost() == 15
