"""In which order the eligible pools are asked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox_router.model.capability import UnitPrice
from sandbox_router.model.money import Price
from sandbox_router.model.pool import Pool
from sandbox_router.model.spec import Isolation, Preferences, Spec
from sandbox_router.routing.health import Health
from sandbox_router.routing.order import route
from tests.unit.core.build import SHAPE, pool
from tests.unit.core.chance import quick

WELL = Health()


def priced(id_: str, position: int, vcpu_hour: int | None, kind: str = "fake") -> Pool:
    price = None if vcpu_hour is None else UnitPrice(vcpu_hour, 0, "USD", "", "")
    return pool(id_, position, profile_price=price, profile_kind=kind)


POOLS = [
    priced("dear", 0, 900, "one"),
    priced("cheap", 1, 100, "two"),
    priced("unknown", 2, None, "two"),
    priced("middle", 3, 500, "three"),
]


def asked(pools: list[Pool], **preferences: Any) -> list[str]:
    spec = Spec(SHAPE, prefer=replace(Preferences(), **preferences))
    return [c.pool_id for c in route(spec, pools, WELL).candidates]


@pytest.mark.parametrize(
    ("preferences", "order"),
    [
        ({}, ["dear", "cheap", "unknown", "middle"]),
        ({"sort": "price"}, ["cheap", "middle", "dear", "unknown"]),
        ({"sort": "latency"}, ["dear", "cheap", "unknown", "middle"]),
        ({"order": ("middle",)}, ["middle", "dear", "cheap", "unknown"]),
        ({"order": ("middle", "cheap")}, ["middle", "cheap", "dear", "unknown"]),
        ({"order": ("two",)}, ["cheap", "unknown", "dear", "middle"]),
        ({"order": ("unknown", "two")}, ["unknown", "cheap", "dear", "middle"]),
        ({"order": ("middle",), "sort": "price"}, ["middle", "cheap", "dear", "unknown"]),
        ({"order": ("nobody",)}, ["dear", "cheap", "unknown", "middle"]),
        ({"allow_fallbacks": False}, ["dear"]),
        ({"allow_fallbacks": False, "sort": "price"}, ["cheap"]),
        ({"allow_fallbacks": False, "order": ("middle", "cheap")}, ["middle"]),
        ({"allow_fallbacks": False, "order": ("nobody",)}, []),
        ({"only": ("two",)}, ["cheap", "unknown"]),
        ({"only": ("middle", "dear")}, ["dear", "middle"]),
        ({"ignore": ("two", "dear")}, ["middle"]),
        ({"only": ("two",), "ignore": ("cheap",)}, ["unknown"]),
        ({"max_price_per_hour": 1000}, ["cheap", "middle"]),
    ],
)
def test_the_callers_order_comes_first_then_the_sort_then_the_operators(
    preferences: dict[str, Any], order: list[str]
) -> None:
    assert asked(POOLS, **preferences) == order


def test_pools_the_operator_put_side_by_side_are_asked_by_price_then_by_name() -> None:
    pools = [priced("c", 0, 300), priced("b", 0, 100), priced("d", 0, None), priced("a", 0, 300)]
    assert asked(pools) == ["b", "a", "c", "d"]


@quick
@given(
    st.permutations(POOLS),
    st.sampled_from([(), ("middle",), ("two", "dear")]),
    st.sampled_from([None, "price", "success"]),
)
def test_the_route_is_the_same_however_the_pools_are_listed(
    pools: list[Pool], order: tuple[str, ...], sort: Any
) -> None:
    spec = Spec(SHAPE, prefer=Preferences(order=order, sort=sort, ignore=("cheap",)))
    first, again = route(spec, POOLS, WELL), route(spec, pools, WELL)
    assert again.candidates == first.candidates
    assert set(again.refused) == set(first.refused)


@quick
@given(
    st.lists(st.sampled_from(POOLS), unique_by=lambda p: p.id),
    st.sets(st.sampled_from([p.id for p in POOLS])),
)
def test_every_pool_is_either_asked_or_told_why_not(pools: list[Pool], broken: set[str]) -> None:
    found = route(Spec(SHAPE), pools, Health(frozenset(broken)))
    named = [c.pool_id for c in found.candidates] + [r.pool_id for r in found.refused]
    assert sorted(named) == sorted(p.id for p in pools)
    assert all(r.reasons for r in found.refused)
    assert not broken & {c.pool_id for c in found.candidates}


def test_a_candidate_tells_what_is_booted_where_at_what_price_and_why() -> None:
    made = pool("alpha", 3, region="de-1", isolation=Isolation.GVISOR)
    spec = Spec(SHAPE, prefer=Preferences(order=("alpha",), sort="price"))
    (candidate,) = route(spec, [made], WELL).candidates
    assert (candidate.pool_id, candidate.provider, candidate.reference) == (
        *("alpha", "fake", "base"),
    )
    assert candidate.price == Price(140_000, "USD", "2026-01-01", "https://example.com")
    assert candidate.reasons == ("provider.order", "sort:price", "position:3")
    assert (candidate.region, candidate.isolation) == ("de-1", Isolation.GVISOR)
    assert candidate.shape == SHAPE


def test_a_sort_nobody_measures_yet_says_so() -> None:
    spec = Spec(SHAPE, prefer=Preferences(sort="latency"))
    assert route(spec, [pool()], WELL).candidates[0].reasons == (
        *("sort:latency:no_measurements_yet", "position:0"),
    )
