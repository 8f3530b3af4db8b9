"""The simulation bites: every promise has a seeded fault, and a small selection finds it."""

from __future__ import annotations

import pytest

from tests.sim.mutants import MUTANTS, Hunt, Mutant
from tests.sim.mutants.seeding import finds
from tests.sim.stories import STORIES

CLAIMED = {
    *("I1", "I2", "I3", "I4", "I5", "I6", "I7", "I8", "I9", "I10", "I11", "I12", "I13", "I14"),
    *("I15", "I16", "I17", "I18", "I19", "I21", "I22", "I23", "I24", "I27", "I28", "I39"),
}
"""What the simulation claims to show."""
HUNTS = {mutant.hunt.__name__: mutant.hunt for mutant in MUTANTS}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.name)
def test_a_seeded_fault_is_found(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant.seed(monkeypatch)
    assert finds(mutant.hunt)


@pytest.mark.parametrize("hunt", HUNTS.values(), ids=HUNTS)
def test_what_finds_a_fault_finds_none_where_none_is(hunt: Hunt) -> None:
    hunt()


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_story(story: Hunt) -> None:
    story()


def test_every_promise_the_simulation_claims_to_show_has_a_mutant() -> None:
    broken = {promise for mutant in MUTANTS for promise in mutant.breaks.split()}
    assert broken >= CLAIMED
    assert len(MUTANTS) >= 50
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
