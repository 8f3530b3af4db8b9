"""Every crash point under every fault: at most one instance in use, none in the end."""

from __future__ import annotations

import pytest

from tests.sim.scenario import Scenario, everything, run

GRID = list(everything())
STRIDE, PARTS = 7, 16
"""`make test` runs every seventh scenario, `make sim` all of them."""


@pytest.mark.parametrize("part", range(PARTS))
def test_a_crash_at_any_port_call_leaves_no_second_instance_and_no_orphan(
    part: int, request: pytest.FixtureRequest
) -> None:
    chosen = GRID if request.config.getoption("--long") else GRID[::STRIDE]
    for scenario in chosen[part::PARTS]:
        _told(scenario)


def _told(scenario: Scenario) -> None:
    try:
        run(scenario)
    except AssertionError as failed:
        raise AssertionError(f"{scenario}: {failed}") from failed


def test_the_short_grid_still_meets_every_pair_of_crash_point_and_fault() -> None:
    chosen = GRID[::STRIDE]
    assert len(chosen) >= 2_000
    for fault in ("alpha", "beta", "retry", "destroy"):
        pairs = {(s.crash, getattr(s, fault)) for s in GRID}
        assert {(s.crash, getattr(s, fault)) for s in chosen} == pairs
