"""Every crash point under every fault, every rival, every net alone: the grid of `grid`."""

from __future__ import annotations

import itertools

import pytest

from tests.sim.grid import FAMILIES, chosen, everything, told

STRIDES = {
    "creates": 23,
    "nets": 7,
    "destroys": 16,
    "rivals": 23,
    "twice": 7,
    "vendors": 37,
    "lists": 11,
    "power": 11,
}
"""`make test` runs every so-manieth scenario of a family, `make sim` all of them."""
PARTS = 8
SHORT, LONG = 10_000, 50_000
WHAT = {
    "creates": ("alpha", "beta", "retry", "destroy", "lag_ms", "env"),
    "nets": ("alpha", "nets", "retry"),
    "destroys": ("faults", "destroy"),
    "rivals": ("rival", "rival_at", "alpha"),
    "twice": ("crash_next", "alpha"),
    "vendors": ("quirk", "alpha", "faults"),
    "lists": ("quirk", "alpha", "faults"),
    "power": ("power", "faults", "nets"),
}
"""What of a family meets every crash point even in the short grid."""


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("family", FAMILIES)
def test_no_second_instance_no_orphan_and_one_answer(
    family: str, part: int, request: pytest.FixtureRequest
) -> None:
    stride = 1 if request.config.getoption("--long") else STRIDES[family]
    for scenario in itertools.islice(chosen(family, stride), part, None, PARTS):
        told(scenario)


def test_the_short_grid_is_long_and_meets_every_pair_of_crash_point_and_fault() -> None:
    short = {family: list(chosen(family, STRIDES[family])) for family in FAMILIES}
    assert sum(map(len, short.values())) >= SHORT
    assert sum(1 for family in FAMILIES for _ in everything(family)) >= LONG
    for family, names in WHAT.items():
        for name in names:
            pairs = {(s.crash, getattr(s, name)) for s in everything(family)}
            met = {(s.crash, getattr(s, name)) for s in short[family]}
            assert met == pairs, (family, name, len(pairs - met))
