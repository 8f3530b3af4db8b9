"""Kinds that give any image any size: the rule as data, and what routing makes of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from functions.edge import config, offers, wiring
from functions.edge.settings import BadSetting, Settings
from sandbox_router.model.capability import Profile, Sizes, read
from sandbox_router.model.pool import Pool, Prepared
from sandbox_router.model.size import Gpu, Shape
from sandbox_router.model.spec import Preferences, Spec
from sandbox_router.routing.eligible import placement, refusals
from sandbox_router.routing.health import Health

RULE = {"rule": "range", "milli_vcpu": [10, 8000], "memory_mib": [64, None]}
TWO = Shape.of(2, 4)


def profile(**changes: Any) -> Profile:
    return read(
        {
            "kind": "free",
            "name": "Free",
            "naming": {"idempotent": False},
            "lifetime": {"max_ttl": None},
            "labels": {"count": 20, "value_length": 63, "reserved": ["vendor.io/"]},
            "isolation": "container",
            "abilities": {},
            "hosts": [],
            "sizes": RULE,
            **changes,
        }
    )


def pool(images: Mapping[str, tuple[Prepared, ...]] | None = None, **changes: Any) -> Pool:
    return Pool("one", profile(**changes), 0, images=images or {}, any_size={"default": "base:1"})


@pytest.mark.parametrize(
    ("shape", "holds"),
    [
        (Shape(10, 64), True),
        (Shape(8000, 10**7), True),
        (Shape(9, 64), False),
        (Shape(8001, 64), False),
        (Shape(10, 63), False),
        (Shape(10, 64, disk_mib=1), False),
        (Shape(10, 64, gpu=Gpu("a100")), False),
    ],
)
def test_a_range_holds_its_ends_and_neither_disk_nor_gpu(shape: Shape, holds: bool) -> None:
    assert Sizes((10, 8000), (64, None)).hold(shape) is holds


def test_the_rule_is_read_from_the_profile_and_another_rule_is_refused() -> None:
    assert profile().sizes == Sizes((10, 8000), (64, None))
    assert profile(sizes=None).sizes is None
    with pytest.raises(ValueError, match="rule"):
        profile(sizes={**RULE, "rule": "steps"})


@pytest.mark.parametrize(
    ("image", "reference"), [("default", "base:1"), ("free:python:3.12", "python:3.12")]
)
def test_any_image_has_exactly_the_shape_that_was_asked_for(image: str, reference: str) -> None:
    spec = Spec(Shape.of(0.5, 1.5), image)
    assert placement(spec, pool()) == Prepared(reference, spec.shape)
    assert refusals(spec, pool(), Health()) == ()


@pytest.mark.parametrize("image", ["default", "free:python:3.12"])
def test_a_shape_outside_the_ranges_is_refused_for_its_size(image: str) -> None:
    spec = Spec(Shape.of(9, 1), image)
    assert placement(spec, pool()) is None
    assert refusals(spec, pool(), Health()) == ("size",)


@pytest.mark.parametrize("image", ["other", "e2b:python:3.12"])
def test_an_image_of_another_kind_or_of_no_table_is_not_prepared(image: str) -> None:
    assert refusals(Spec(TWO, image), pool(), Health()) == ("image_not_prepared",)


def test_an_image_prepared_at_the_size_is_taken_before_one_of_any_size() -> None:
    both = pool({"default": (Prepared("small", TWO),)})
    assert placement(Spec(TWO), both) == Prepared("small", TWO)
    assert placement(Spec(Shape.of(4, 8)), both) == Prepared("base:1", Shape.of(4, 8))


def test_where_an_image_decides_its_size_the_vendors_own_reference_is_taken_as_it_is() -> None:
    spec = Spec(Shape.of(99, 1), "free:tmpl_x")
    assert placement(spec, pool(sizes=None)) == Prepared("tmpl_x", spec.shape)


def test_labels_that_the_vendor_cannot_keep_are_refused_and_never_cut() -> None:
    labels = {"vendor.io/x": "1", "long": "v" * 64}
    reasons = refusals(Spec(TWO, labels=labels), pool(), Health())
    assert reasons == ("labels:reserved_key", "labels:value_length")
    assert refusals(Spec(TWO, labels={"long": "v" * 63}), pool(), Health()) == ()


def test_a_price_that_is_not_known_is_no_price_below_a_ceiling() -> None:
    prefer = Preferences(max_price_per_hour=10)
    assert refusals(Spec(TWO, prefer=prefer), pool(), Health()) == ("price_unknown",)


def pools_file(folder: Path, **default: Any) -> Path:
    path = folder / "pools.json"
    rows = [
        {"id": "one", "kind": "opensandbox", "key": "k", "api_url": "https://a.b"},
        {"id": "two", "kind": "e2b", "key": "k"},
    ]
    path.write_text(json.dumps({"pools": rows, "images": {"default": default}}))
    return path


def read_file(path: Path) -> dict[str, config.PoolConfig]:
    return {row.id: row for row in config.read(path, frozenset({"opensandbox", "e2b"}), {})}


def test_an_image_without_sizes_is_one_of_any_size(tmp_path: Path) -> None:
    found = read_file(pools_file(tmp_path, opensandbox="python:3.12", two={"2x4": "base"}))
    assert found["one"].any_size == {"default": "python:3.12"}
    assert found["one"].images == {}
    assert found["two"].any_size == {}
    assert found["two"].images == {"default": (Prepared("base", TWO),)}


def test_a_pools_own_entry_stands_before_its_kinds(tmp_path: Path) -> None:
    both = read_file(pools_file(tmp_path, opensandbox="a", one="b", e2b={"2x4": "base"}))
    assert both["one"].any_size == {"default": "b"}
    mixed = read_file(pools_file(tmp_path, opensandbox="a", one={"2x4": "b"}, e2b={"2x4": "base"}))
    assert mixed["one"].any_size == {}
    assert mixed["one"].images == {"default": (Prepared("b", TWO),)}


@pytest.mark.parametrize("wrong", ["", " "])
def test_an_image_that_is_no_text_is_refused(tmp_path: Path, wrong: str) -> None:
    with pytest.raises(BadSetting, match="default"):
        read_file(pools_file(tmp_path, opensandbox=wrong, e2b={"2x4": "base"}))


def test_a_kind_whose_images_have_sizes_needs_them(tmp_path: Path) -> None:
    path = pools_file(tmp_path, opensandbox="python:3.12", e2b="base")
    settings = replace(Settings.of({"STATE": str(tmp_path)}), pools=path)
    with pytest.raises(BadSetting, match="needs a size for kind 'e2b'"):
        wiring.ConfiguredPools(settings)


def test_what_any_size_serves_is_in_the_catalog() -> None:
    there = pool()
    served = [row["size"] for row in offers.sizes([there]) if row["pools"]]
    assert served[0] == "1x1"
    assert "16x32" not in served  # over the range
    (image,) = offers.images([there])
    assert image["prepared"] == [
        {"pool_id": "one", "provider": "free", "size": "any", "reference": "base:1"}
    ]
