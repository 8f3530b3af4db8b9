"""May a pool serve a request? For every option there is a pool that cannot, and it says why."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox_router.model.capability import LabelLimits, Lifetime, UnitPrice
from sandbox_router.model.pool import Pool, Prepared
from sandbox_router.model.size import Gpu, Shape
from sandbox_router.model.spec import Isolation, Preferences, Spec
from sandbox_router.routing.eligible import placement, refusals
from sandbox_router.routing.health import Health
from sandbox_router.routing.order import route
from tests.unit.core.build import SHAPE, pool
from tests.unit.core.chance import quick

WELL = Health()
BIG = Shape.of(4, 8)
FREE = UnitPrice(0, 0, "USD", "", "")


def images(*shapes: Shape, name: str = "default") -> dict[str, tuple[Prepared, ...]]:
    return {name: tuple(Prepared(f"ref-{shape.name}", shape) for shape in shapes)}


def spec(**changes: Any) -> Spec:
    return replace(Spec(SHAPE), **changes)


def prefer(**changes: Any) -> Spec:
    return spec(prefer=replace(Preferences(), **changes))


@dataclass(frozen=True)
class Case:
    """A request, a pool that cannot serve it, why, and what the pool would need to."""

    name: str
    spec: Spec
    pool: dict[str, Any]
    why: tuple[str, ...]
    would: dict[str, Any] = field(default_factory=dict)
    health: Health = WELL


CASES = [
    Case("image not prepared", spec(image="python"), {}, ("image_not_prepared",),
         {"images": images(SHAPE, name="python")}),
    Case("image in no pool at all", spec(), {"images": {}}, ("image_not_prepared",)),
    Case("size not prepared", spec(shape=BIG), {}, ("size",), {"images": images(SHAPE, BIG)}),
    Case("more memory than prepared", spec(shape=Shape.of(2, 8)), {}, ("size",),
         {"images": images(Shape.of(2, 8))}),
    Case("less than prepared is another size", spec(shape=Shape.of(1, 4)), {}, ("size",),
         {"images": images(Shape.of(1, 4))}),
    Case("disk unknown", spec(shape=Shape.of(2, 4, 10)), {}, ("size",),
         {"images": images(Shape.of(2, 4, 10))}),
    Case("disk too small", spec(shape=Shape.of(2, 4, 10)), {"images": images(Shape.of(2, 4, 9))},
         ("size",), {"images": images(Shape.of(2, 4, 11))}),
    Case("no accelerator", spec(shape=replace(SHAPE, gpu=Gpu("a10"))), {}, ("size",),
         {"images": images(replace(SHAPE, gpu=Gpu("a10")))}),
    Case("another accelerator", spec(shape=replace(SHAPE, gpu=Gpu("a10", 2))),
         {"images": images(replace(SHAPE, gpu=Gpu("a10", 1)))}, ("size",)),
    Case("another vendor's own image", spec(image="other:tmpl"), {}, ("image_not_prepared",),
         {"profile_kind": "other"}),
    Case("region", spec(region="eu"), {"region": "us-1", "geo": "us"}, ("region",),
         {"region": "de-1", "geo": "eu"}),
    Case("region unknown", spec(region="eu"), {}, ("region",), {"region": "eu"}),
    Case("isolation of the plan", spec(isolation=Isolation.MICROVM),
         {"isolation": Isolation.GVISOR}, ("isolation",)),
    Case("life too short", spec(ttl_seconds=3601), {"max_ttl": 3600}, ("ttl_seconds",),
         {"max_ttl": 3601}),
    Case("the vendor's life too short", spec(ttl_seconds=3601),
         {"max_ttl": 9999, "profile_lifetime": Lifetime(3600)}, ("ttl_seconds",),
         {"max_ttl": 9999, "profile_lifetime": Lifetime(3601)}),
    Case("too many labels", spec(labels={"a": "", "b": ""}),
         {"profile_labels": LabelLimits(6, 9)}, ("labels:count",),
         {"profile_labels": LabelLimits(7, 9)}),
    Case("no room for our own tags", spec(), {"profile_labels": LabelLimits(4, 9)},
         ("labels:count",), {"profile_labels": LabelLimits(5, 9)}),
    Case("label too long", spec(labels={"a": "1234"}), {"profile_labels": LabelLimits(9, 3)},
         ("labels:value_length",), {"profile_labels": LabelLimits(9, 4)}),
    Case("label's syntax", spec(labels={"a": "b c"}),
         {"profile_labels": LabelLimits(9, 9, "[a-z]*")}, ("labels:value_syntax",),
         {"profile_labels": LabelLimits(9, 9, "[a-z ]*")}),
    Case("label's last line", spec(labels={"a": "b\n"}),
         {"profile_labels": LabelLimits(9, 9, "^[a-z]*$")}, ("labels:value_syntax",)),
    Case("env", spec(env_names=("A",)), {"profile_abilities": {"env": None}}, ("env",)),
    Case("env not declared", spec(env_names=("A",)), {"profile_abilities": {}}, ("env",),
         {"profile_abilities": {"env": {}}}),
    Case("required ability", prefer(require=("exec", "gpu", "snapshots")), {},
         ("ability:gpu", "ability:snapshots"),
         {"profile_abilities": {"exec": {}, "gpu": {}, "snapshots": {}}}),
    Case("price unknown", prefer(max_price_per_hour=1), {"profile_price": None},
         ("price_unknown",), {"profile_price": FREE}),
    Case("price over the ceiling", prefer(max_price_per_hour=139_999), {},
         ("max_price_per_hour",), {"profile_price": FREE}),
    Case("only another pool", prefer(only=("beta",)), {}, ("not_in_provider.only",), {}),
    Case("ignored by id", prefer(ignore=("alpha",)), {}, ("in_provider.ignore",), {}),
    Case("ignored by kind", prefer(ignore=("fake",)), {}, ("in_provider.ignore",),
         {"profile_kind": "other"}),
    Case("not in an order without fallbacks", prefer(order=("beta",), allow_fallbacks=False), {},
         ("not_in_provider.order",), {"profile_kind": "beta"}),
    Case("draining", spec(), {"draining": True}, ("pool_draining",)),
    Case("broken", spec(), {}, ("pool_broken",), {}, Health(frozenset({"alpha"}))),
    Case("everything at once",
         spec(region="eu", isolation=Isolation.MICROVM, ttl_seconds=61, image="x",
              env_names=("A",), prefer=Preferences(only=("beta",), require=("gpu",))),
         {"draining": True, "max_ttl": 60, "isolation": Isolation.PROCESS,
          "profile_abilities": {}},
         ("pool_draining", "not_in_provider.only", "region", "isolation", "ability:gpu", "env",
          "ttl_seconds", "image_not_prepared")),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_pool_that_cannot_says_why_and_is_no_candidate(case: Case) -> None:
    made = pool(**case.pool)
    assert refusals(case.spec, made, case.health) == case.why
    found = route(case.spec, [made], case.health)
    assert found.candidates == ()
    assert [(r.pool_id, r.provider, r.reasons) for r in found.refused] == [
        ("alpha", "fake", case.why)
    ]


@pytest.mark.parametrize("case", [c for c in CASES if c.would], ids=lambda case: case.name)
def test_a_pool_that_can_is_a_candidate(case: Case) -> None:
    able = pool(**case.would)
    assert refusals(case.spec, able, WELL) == ()
    assert [c.pool_id for c in route(case.spec, [able], WELL).candidates] == ["alpha"]


@pytest.mark.parametrize(
    "served",
    [
        spec(),
        spec(region="eu"),
        spec(region="de-1"),
        spec(isolation=Isolation.GVISOR),
        spec(ttl_seconds=3600),
        prefer(only=("alpha", "x")),
        prefer(only=("fake",)),
        prefer(ignore=("beta",)),
        prefer(order=("fake",), allow_fallbacks=False),
        prefer(allow_fallbacks=False),
        prefer(max_price_per_hour=140_000),
        prefer(require=("exec", "env")),
    ],
)
def test_what_a_pool_can_do_is_no_reason_against_it(served: Spec) -> None:
    made = pool(region="de-1", geo="eu", max_ttl=3600)
    assert refusals(served, made, WELL) == ()


def test_a_vendors_own_image_is_taken_as_it_is_by_that_vendor_only() -> None:
    own = spec(image="fake:tmpl:v1@sha", shape=BIG)
    assert placement(own, pool()) == Prepared("tmpl:v1@sha", BIG)
    assert placement(own, pool(profile_kind="other")) is None


def test_the_smallest_fitting_entry_is_not_searched_the_operators_first_is_taken() -> None:
    wide, wider = Shape.of(2, 4, 20), Shape.of(2, 4, 10)
    want = spec(shape=Shape.of(2, 4, 5))
    assert placement(want, pool(images=images(wide, wider))) == Prepared("ref-2x4", wide)


Cap = st.none() | st.integers(30, 86_400)


@quick
@given(st.integers(30, 86_400), Cap, Cap)
def test_a_life_is_never_longer_than_the_smaller_cap(
    ttl: int, plan: int | None, vendor: int | None
) -> None:
    made: Pool = pool(max_ttl=plan, profile_lifetime=Lifetime(vendor))
    caps = [cap for cap in (plan, vendor) if cap is not None]
    refused = "ttl_seconds" in refusals(spec(ttl_seconds=ttl), made, WELL)
    assert refused == any(ttl > cap for cap in caps)
