"""A pool that refused a create for want of room is asked last for a while, in every process."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest

from sandbox_router.lifecycle.health import COOL_MOST_SECONDS, COOL_SECONDS
from sandbox_router.model.failure import (
    Capacity,
    Conflicted,
    Outage,
    Permission,
    PoolUnsupported,
    ProviderFailure,
    Quota,
    RateLimited,
    Region,
    Unknown,
)
from sandbox_router.model.sandbox import State
from sandbox_router.model.spec import Preferences
from sandbox_router.table import Contended
from tests.fakes.clock import START
from tests.sim.world import TENANT
from tests.unit.core.scenes import NO_FALLBACK, Scene, body

NAMES = ("alpha", "beta", "gamma")
COOLS = [Capacity, RateLimited, Quota, Outage]
DOES_NOT = [Region, PoolUnsupported, Permission, Conflicted, Unknown]
_keys = itertools.count()


@pytest.fixture
def scene() -> Scene:
    return Scene(names=NAMES)


def asked(scene: Scene, **spec: Any) -> list[str]:
    """Which pools one more create asks, in order."""
    shown = body(scene.ask(f"cool-{next(_keys)}", **spec))
    return [attempt["pool_id"] for attempt in shown["attempts"]]


def ends(scene: Scene) -> dict[str, object]:
    """When each pool's cool-down ends, in seconds from the start, as it is stored."""
    items = [i for i in scene.memory.items() if "cooling_until" in i]
    return {str(i["pk"])[5:]: (int(str(i["cooling_until"])) - START) / 1000 for i in items}


@pytest.mark.case("A10")
def test_pools_that_failed_over_are_left_alone_until_they_have_cooled_down(scene: Scene) -> None:
    for name in ("alpha", "beta"):
        scene.vendor(name).script("create", "capacity")
    assert asked(scene) == ["alpha", "beta", "gamma"]
    scene.clock.sleep(1)
    calls = [len(scene.vendor(name).calls) for name in NAMES]
    assert asked(scene) == ["gamma"]
    assert [len(scene.vendor(name).calls) for name in NAMES] == [*calls[:2], calls[2] + 1]
    scene.clock.sleep(COOL_SECONDS)
    assert asked(scene) == ["alpha"]


@pytest.mark.case("A10")
def test_a_new_process_reads_the_same_end_and_not_a_fresh_one(scene: Scene) -> None:
    scene.vendor().script("create", "capacity")
    asked(scene)
    end = ends(scene)["alpha"]
    assert end == COOL_SECONDS
    for seconds in (1, 20, 8.999):
        scene.clock.sleep(seconds)
        scene.boot()
        assert asked(scene) == ["beta"]
    assert ends(scene)["alpha"] == end
    scene.clock.sleep(0.001)
    assert asked(scene) == ["alpha"]


@pytest.mark.parametrize("failure", COOLS, ids=lambda cls: cls.__name__)
def test_a_pool_cools_down_after(scene: Scene, failure: type[ProviderFailure]) -> None:
    scene.vendor().answers["create"] = [failure()]
    assert asked(scene) == ["alpha", "beta"]
    assert asked(scene) == ["beta"]


@pytest.mark.parametrize("failure", DOES_NOT, ids=lambda cls: cls.__name__)
def test_a_pool_does_not_cool_down_after(scene: Scene, failure: type[ProviderFailure]) -> None:
    scene.vendor().answers["create"] = [failure()]
    asked(scene)
    assert asked(scene) == ["alpha"]
    assert ends(scene) == {}


@pytest.mark.parametrize("op", ["get", "destroy", "pause"])
def test_a_refusal_of_anything_but_a_create_says_nothing_about_room(scene: Scene, op: str) -> None:
    box = scene.made()
    scene.vendor().answers[op] = [RateLimited(retry_after=60)]
    if op == "get":
        scene.router.get(TENANT, box.id, refresh=True)
    else:
        scene.asked(lambda: getattr(scene.router, op)(TENANT, box.id))
    assert asked(scene) == ["alpha"]


@pytest.mark.parametrize(
    ("told", "seconds"), [(None, 30), (1, 1), (7, 7), (600, COOL_MOST_SECONDS), (10**9, 300)]
)
def test_it_lasts_as_long_as_the_provider_says_within_bounds(
    scene: Scene, told: int | None, seconds: int
) -> None:
    scene.vendor().answers["create"] = [RateLimited(retry_after=told)]
    asked(scene)
    assert ends(scene) == {"alpha": seconds}
    scene.clock.sleep(seconds - 0.001)
    assert asked(scene) == ["beta"]
    scene.clock.sleep(0.001)
    assert asked(scene) == ["alpha"]


def test_when_all_are_cool_they_are_asked_in_order_and_none_is_lost(scene: Scene) -> None:
    for name in NAMES:
        scene.vendor(name).script("create", "quota")
    assert asked(scene) == [*NAMES]
    assert asked(scene) == ["alpha"]


def test_the_route_says_who_is_asked_last_and_why(scene: Scene) -> None:
    scene.vendor().script("create", "capacity")
    asked(scene)
    shown = body(scene.ask("next"))["route"]
    assert [(c["pool_id"], c["reasons"]) for c in shown] == [
        ("beta", ["position:1"]),
        ("gamma", ["position:2"]),
        ("alpha", ["cooling", "position:0"]),
    ]


@pytest.mark.parametrize(
    ("preferences", "order"),
    [
        ({"order": ("alpha", "gamma")}, ["gamma", "beta", "alpha"]),
        ({"order": ("gamma", "alpha", "beta")}, ["gamma", "beta", "alpha"]),
        ({"only": ("alpha", "gamma")}, ["gamma", "alpha"]),
        ({"only": ("alpha",)}, ["alpha"]),
        ({"order": ("alpha",), "allow_fallbacks": False}, ["alpha"]),
        ({"order": ("alpha", "gamma"), "allow_fallbacks": False}, ["gamma"]),
        ({"sort": "price"}, ["beta", "gamma", "alpha"]),
    ],
)
def test_the_callers_order_holds_among_those_that_can_serve(
    scene: Scene, preferences: dict[str, Any], order: list[str]
) -> None:
    scene.vendor().script("create", "capacity")
    asked(scene)
    made = scene.made(prefer=replace(Preferences(), **preferences))
    assert [candidate.pool_id for candidate in made.route] == order


def test_without_fallbacks_a_create_goes_to_one_that_can_serve(scene: Scene) -> None:
    scene.vendor().script("create", "capacity")
    asked(scene)
    assert asked(scene, prefer=NO_FALLBACK) == ["beta"]


def test_a_create_that_succeeds_writes_nothing_and_a_cool_down_is_written_once(
    scene: Scene,
) -> None:
    written: list[str] = []

    def health(point: str) -> None:
        if point == "table.write.done":
            written.append(repr([i for i in scene.memory.items() if i["sk"] == "HEALTH"]))

    scene.watch = health
    asked(scene)
    assert set(written) == {"[]"}
    before = scene.ticks
    asked(scene)
    assert scene.points[before:].count("table.write.done") == 2
    for name in NAMES:
        scene.vendor(name).script("create", *["capacity"] * 3)
    written.clear()
    assert scene.ask("none", wait=25).status == 503
    assert len(set(written) - {"[]"}) == len(NAMES)
    assert ends(scene) == dict.fromkeys(NAMES, 30.0)


def test_two_processes_that_see_it_at_once_agree_on_the_first_end(scene: Scene) -> None:
    first = scene.router
    scene.vendor().answers["create"] = [Capacity(), RateLimited(retry_after=200)]
    first.route(TENANT, scene.made(prefer=Preferences(only=("beta",))).spec)  # reads health
    scene.boot()
    asked(scene)
    scene.clock.sleep(1)
    scene.router = first  # which has not heard of it yet
    assert asked(scene) == ["alpha", "beta"]
    assert ends(scene) == {"alpha": 30.0}
    scene.clock.sleep(28.999)
    assert asked(scene) == ["beta"]
    scene.clock.sleep(0.001)
    assert asked(scene) == ["alpha"]


def test_another_process_hears_of_it_within_five_seconds(scene: Scene) -> None:
    first = scene.router
    asked(scene)
    scene.boot()
    scene.vendor().script("create", "capacity")
    asked(scene)
    scene.router = first
    scene.clock.sleep(5)
    assert asked(scene) == ["beta"]


def test_a_pool_may_be_broken_and_cool_and_comes_back_from_each(scene: Scene) -> None:
    scene.vendor().script("create", "capacity", "unauthorized")
    asked(scene)
    asked(scene, prefer=Preferences(only=("alpha",)))
    assert scene.router.broken() == {"alpha"}
    scene.boot()
    scene.router.heal()
    assert asked(scene) == ["beta"]
    scene.clock.sleep(31)
    assert asked(scene) == ["alpha"]
    scene.boot()
    assert scene.router.broken() == set()


def test_a_store_that_does_not_take_it_fails_nobodys_create(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = scene.memory.write

    def refuse(*writes: Any) -> None:
        if any(each.key[1] == "HEALTH" for each in writes):
            raise Contended
        write(*writes)

    monkeypatch.setattr(scene.memory, "write", refuse)
    scene.vendor("alpha").script("create", "capacity")
    scene.vendor("beta").script("create", "unauthorized")
    assert asked(scene) == [*NAMES]
    assert scene.box().state is State.RUNNING
    assert asked(scene) == ["gamma"]


def test_the_passes_of_one_create_keep_their_own_order(scene: Scene) -> None:
    scene.vendor("alpha").script("create", "capacity")
    for name in ("beta", "gamma"):
        scene.vendor(name).script("create", "capacity")
    reply = scene.ask("passes", wait=25)
    assert [a["pool_id"] for a in body(reply)["attempts"]] == [*NAMES, "alpha"]
