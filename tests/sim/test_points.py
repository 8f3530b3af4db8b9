"""A process may die at any moment: each port call of a life, whatever vendors do in it."""

from __future__ import annotations

import pytest

from tests.sim.grid import FAMILIES, told
from tests.sim.points import LIVES, deaths, lives
from tests.sim.scenario import Scenario

STRIDES = {
    "creates": 13,
    "destroys": 8,
    "power": 7,
    "captures": 25,
    "capture ends": 6,
    "vendors": 7,
}
"""`make test` takes every so-manieth life, with all of its port calls; `make sim` all lives."""
VENDORS = ("alpha", "faults", "power", "quirk", "shot")
"""What vendors do: each of it is met at every port call, even in `make test`."""


@pytest.mark.parametrize("family", LIVES)
@pytest.mark.parametrize("part", range(4))
def test_a_process_that_dies_at_any_port_call_leaves_nothing(
    family: str, part: int, request: pytest.FixtureRequest
) -> None:
    stride = 1 if request.config.getoption("--long") else STRIDES[family]
    for life in lives(family)[::stride][part::4]:
        for death in deaths(life):
            told(death)


@pytest.mark.parametrize("family", LIVES)
def test_whatever_vendors_do_is_done_in_a_life_that_ends_everywhere(family: str) -> None:
    chosen = lives(family)[:: STRIDES[family]]
    for name in set(VENDORS) & FAMILIES[family].keys():
        assert _met(chosen, name) == _met(lives(family), name)


def _met(lives: list[Scenario], name: str) -> set[str]:
    return {word for life in lives for word in getattr(life, name).split() or ["nothing"]}
