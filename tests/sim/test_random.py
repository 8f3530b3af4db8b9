"""Random lives end with nothing left; a failure names its seed."""

from __future__ import annotations

import pytest

from tests.sim.blame import telling
from tests.sim.lives import live

SEEDS, LONG_SEEDS, BATCHES = 640, 40_000, 32


@pytest.mark.parametrize("batch", range(BATCHES))
def test_random_lives_end_with_nothing_left(batch: int, request: pytest.FixtureRequest) -> None:
    count = LONG_SEEDS if request.config.getoption("--long") else SEEDS
    step = count // BATCHES
    for seed in range(batch * step, (batch + 1) * step):
        with telling(f"seed {seed}"):
            live(seed)
