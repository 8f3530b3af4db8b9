"""Sizes and prices: names, units, roundings."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox_router.model.failure import Invalid
from sandbox_router.model.money import HOUR_MS, MICRO, Price, amount, estimate, micro
from sandbox_router.model.size import STANDARD, SUFFIXES, Gpu, Shape, parse
from tests.unit.core.build import T, profile, running, s
from tests.unit.core.chance import quick

MS = st.integers(0, 10**12)


@pytest.mark.parametrize(
    ("name", "milli_vcpu", "memory_mib"),
    [
        ("1x1", 1000, 1024),
        ("2x4", 2000, 4096),
        ("16x64", 16_000, 65_536),
        ("0.5x0.5", 500, 512),
        ("0.25x1.5", 250, 1536),
        ("1.001x1", 1001, 1024),
        ("0.125x0.125", 125, 128),
        ("999x9999", 999_000, 10_238_976),
    ],
)
def test_a_size_is_vcpu_by_gibibytes(name: str, milli_vcpu: int, memory_mib: int) -> None:
    assert parse(name) == (Shape(milli_vcpu, memory_mib), None)


@pytest.mark.parametrize(("suffix", "sort"), SUFFIXES.items())
def test_a_suffix_says_how_to_sort(suffix: str, sort: str) -> None:
    assert parse(f"2x4:{suffix}") == (Shape(2000, 4096), sort)


@pytest.mark.parametrize(
    "name",
    [
        *("", "2", "x4", "2x", "2X4", "2 x4", " 2x4", "2x4 ", "2x4\n", "-2x4", "2x-4", "2,5x4"),
        *("2x4:", "2x4:best", "2x4:CHEAP", "2x4:cheap:fast", "2x4:cheap\n", "1e1x4", "nanx4"),
        *("infx4", "0x4", "2x0", "0.000x4", "1000x4", "2x10000", "2.0001x4", ".5x4", "2.x4"),
        *("\N{FULLWIDTH DIGIT TWO}x4", "\N{ARABIC-INDIC DIGIT TWO}x4", "2x4x8", "2x4;rm"),
    ],
)
def test_what_is_no_size_is_refused_and_names_the_field(name: str) -> None:
    with pytest.raises(Invalid) as refused:
        parse(name)
    assert [path for path, _ in refused.value.fields] == ["size"]


@pytest.mark.parametrize("name", STANDARD)
def test_a_standard_size_keeps_its_name(name: str) -> None:
    assert parse(name)[0].name == name


@quick
@given(st.integers(1, 64_000), st.integers(1, 64))
def test_a_shape_is_called_what_it_parses_from(milli_vcpu: int, memory_gib: int) -> None:
    shape = Shape(milli_vcpu, memory_gib * 1024)
    assert parse(shape.name)[0] == shape


def test_whole_numbers_are_shown_whole() -> None:
    assert json.dumps([Shape.of(2, 4).name, Shape.of(0.5, 1.5).name]) == '["2x4", "0.5x1.5"]'


def test_a_shape_keeps_disk_and_accelerators() -> None:
    gpu = Gpu("h100", 2)
    assert Shape.of(2, 4, 10.5, gpu) == Shape(2000, 4096, 10_752, gpu)


@pytest.mark.parametrize(
    ("per_hour", "running_ms", "micros"),
    [
        (3_600_000, 1_000, 1_000),
        (3_600_000, 0, 0),
        (0, 10**9, 0),
        (1, HOUR_MS, 1),
        (1, HOUR_MS // 2, 1),
        (1, HOUR_MS // 2 - 1, 0),
        (3, HOUR_MS // 2, 2),
        (3_600_000, -1_000, 0),
    ],
)
def test_an_estimate_rounds_half_up_and_is_never_negative(
    per_hour: int, running_ms: int, micros: int
) -> None:
    assert estimate(Price(per_hour), running_ms) == micros


@quick
@given(st.integers(0, 10**9), MS, MS)
def test_an_estimate_never_falls_while_time_passes(per_hour: int, first: int, more: int) -> None:
    price = Price(per_hour)
    assert 0 <= estimate(price, first) <= estimate(price, first + more)


@quick
@given(st.integers(0, 10**9), MS)
def test_an_estimate_is_within_half_a_micro_unit_of_the_exact_price(
    per_hour: int, running_ms: int
) -> None:
    exact = Decimal(per_hour) * running_ms / HOUR_MS
    assert abs(estimate(Price(per_hour), running_ms) - exact) <= Decimal("0.5")


@quick
@given(st.integers(0, 10**15))
def test_micro_units_survive_being_shown_and_read(value: int) -> None:
    assert micro(Decimal(value) / MICRO.__index__()) == value  # type: ignore[arg-type]


@pytest.mark.parametrize(("shown", "stored"), [("0.0504", 50_400), (0.1, 100_000), (2, 2_000_000)])
def test_an_amount_is_read_without_binary_noise(shown: str | float, stored: int) -> None:
    assert micro(shown) == stored
    assert amount(stored) == float(shown)


def test_a_price_is_the_sum_of_its_units() -> None:
    price = profile().price
    assert price is not None
    assert price.of(Shape(2000, 4096)) == Price(140_000, "USD", "2026-01-01", "https://example.com")
    assert price.of(Shape(500, 512)).per_hour == 30_000


def test_only_time_in_which_it_runs_is_counted() -> None:
    box = running(running_since=s(10), billed_ms=5_000)
    assert box.running_ms(s(12)) == 7_000
    assert running(running_since=None, billed_ms=5_000).running_ms(T) == 5_000
