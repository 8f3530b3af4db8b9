"""Every crash point under every fault, every rival, every net alone: the grid of `grid`."""

from __future__ import annotations

import itertools
import math

import pytest

from tests.sim.grid import FAMILIES, chosen, told

STRIDES = {
    "creates": 41,
    "nets": 7,
    "destroys": 16,
    "rivals": 37,
    "twice": 9,
    "vendors": 37,
    "captures": 41,
    "capture ends": 43,
    "capture nets": 13,
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
    "captures": ("shot", "ends", "again"),
    "capture ends": ("shot", "ends", "faults"),
    "capture nets": ("shot", "nets", "faults"),
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
    for scenario in chosen(family, stride * PARTS, part * stride):
        told(scenario)


def test_the_short_grid_is_long_and_meets_every_pair_of_crash_point_and_fault() -> None:
    short = {family: list(chosen(family, STRIDES[family])) for family in FAMILIES}
    assert sum(map(len, short.values())) >= SHORT
    sizes = (math.prod(map(len, axes.values())) for axes in FAMILIES.values())
    assert sum(sizes) >= LONG
    for family, names in WHAT.items():
        for name in names:
            axes = FAMILIES[family]
            pairs = set(itertools.product(axes["crash"], axes[name]))
            met = {(s.crash, getattr(s, name)) for s in short[family]}
            assert met == pairs, (family, name, len(pairs - met))
