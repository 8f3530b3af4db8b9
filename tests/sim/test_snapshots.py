"""A snapshot's life: a process that dies at every port call of it, and lives at random."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.sim.snapshot_life import FAULTS, RIVALS, Story, chosen, told

STORIES = [
    Story(fault=fault, end=end, idempotent=idempotent)
    for fault in FAULTS
    for end in ("deleted", "expired")
    for idempotent in (False, True)
]
SEEDS, LONG_SEEDS = 400, 20_000


@pytest.mark.parametrize("part", range(4))
def test_a_process_that_dies_at_any_port_call_leaves_one_capture_and_then_none(
    part: int, request: pytest.FixtureRequest
) -> None:
    stories = STORIES if request.config.getoption("--long") else STORIES[::3]
    for story in stories[part::4]:
        for crash in range(told(story).ticks + 1):
            told(replace(story, crash=crash))


@pytest.mark.parametrize("part", range(4))
def test_whatever_happens_there_is_one_capture_and_in_the_end_none(
    part: int, request: pytest.FixtureRequest
) -> None:
    count = LONG_SEEDS if request.config.getoption("--long") else SEEDS
    for seed in range(part, count, 4):
        told(chosen(seed))


def test_the_chosen_lives_meet_everything() -> None:
    stories = [chosen(seed) for seed in range(SEEDS)]
    assert {story.fault for story in (*STORIES[::3], *stories)} == set(FAULTS)
    assert {story.rival for story in stories} == set(RIVALS)
