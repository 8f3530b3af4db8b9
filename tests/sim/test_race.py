"""Processes at once, interleaved at every port call: whoever wins, one sandbox and one answer."""

from __future__ import annotations

import random

import pytest

from tests.sim.blame import telling
from tests.sim.moves import acting
from tests.sim.race import Act, Race
from tests.sim.scenario import RIVALS_OF
from tests.sim.world import World

SEEDS, LONG_SEEDS, BATCHES = 1_080, 40_000, 12
FAULTS = ("ok", "ok", "lost", "cut", "late", "slow", "capacity", "forbidden")
ACTS = tuple(name for name in RIVALS_OF if name[0].isalpha() and name != "other")
ON_SHOTS = ("take", "take", "untake", "31 take", "worker", "destroy", "reconcile")
SLEEPS = ("31 client", "31 worker", "31 destroy")


def raced(seed: int) -> World:
    """Two or three processes: a create, and what others do to it or beside it."""
    chance = random.Random(seed)
    world = World(
        limits=False,
        idempotent=chance.random() < 0.5,
        lag_ms=chance.choice((0, 5_000)),
        seed=seed,
        nets=frozenset({"queue", "sweep", "reconcile"}),
    )
    for op in ("create", "capture"):
        world.providers["alpha"].script(op, *chance.choices(FAULTS, k=2))
    if chance.random() < 0.5:  # it is there already, handed over or waiting for its next try
        world.create(ttl=600, wait=chance.choice((0.0, 0.0, 5.0)))
    acts: list[Act] = [_created(world, chance.choice((0.0, 20.0, 20.0)))]
    for name in chance.choices((*ACTS, *ACTS, *SLEEPS), k=chance.choice((1, 2))):
        acts.append(acting(world, name, 600))
    if chance.random() < 0.2:  # it runs, and two want a snapshot of it, or one its end
        world.create("k0", ttl=600)
        if chance.random() < 0.5:
            acting(world, "take")()
        acts = [acting(world, name, 600) for name in chance.choices(ON_SHOTS, k=3)]
    world.rivals = len(acts)
    world.watcher.slept = True
    if chance.random() < 0.3:
        world.crash_at = world.ticks + chance.randint(1, 40)
    world.race = Race(seed)
    world.race.run(acts)
    world.race = None
    world.check()
    world.settle()
    world.check_end()
    return world


def _created(world: World, wait: float) -> Act:
    process = world.process()
    return lambda: world.create(ttl=600, wait=wait, router=process)


@pytest.mark.parametrize("batch", range(BATCHES))
def test_whoever_wins_there_is_one_sandbox_and_one_answer(
    batch: int, request: pytest.FixtureRequest
) -> None:
    count = (LONG_SEEDS if request.config.getoption("--long") else SEEDS) // BATCHES
    for seed in range(batch * count, (batch + 1) * count):
        with telling(f"seed {seed}"):
            raced(seed)


def test_one_seed_is_one_interleaving() -> None:
    first, second = raced(7), raced(7)
    assert first.points == second.points
    assert first.memory.items() == second.memory.items()
