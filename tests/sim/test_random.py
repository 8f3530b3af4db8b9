"""Random lives: many crashes, weak storage, every kind of fault and wish; one seed is one run."""

from __future__ import annotations

import random

import pytest

from tests.sim.world import TENANT, World

SEEDS, LONG_SEEDS, BATCH = 400, 20_000, 50
CREATE = ("ok", "ok", "lost", "cut", "late", "capacity", "rate_limited", "quota", "outage")
OTHER = ("ok", "ok", "ok", "cut", "lost")
WEAK = {"lag_ms": 1_000, "contended": 0.05, "lost": 0.05, "throttled": 0.03, "short": 0.2}


def live(seed: int) -> World:
    """Thirty random moves, then peace until everything is settled."""
    chance = random.Random(seed)
    idempotent, lag = chance.random() < 0.5, chance.choice((0, 5_000))
    weak = WEAK if chance.random() < 0.5 else None
    world = World(idempotent=idempotent, lag_ms=lag, seed=seed, weak=weak, limits=False)
    for provider in world.providers.values():
        provider.boots_ms = chance.choice((0, 0, 3_000))
        provider.script("create", *chance.choices(CREATE, k=6))
        for op in ("destroy", "get", "find", "pause", "resume", "extend"):
            provider.script(op, *chance.choices(OTHER, k=4))
    for _ in range(30):
        if chance.random() < 0.3:
            world.crash_at = world.ticks + chance.randint(1, 40)
        _move(world, chance)
        world.check()
    world.crash_at = None
    if weak is not None:
        for fault in ("contended", "lost", "throttled"):
            setattr(world.weak, fault, 0.0)
    world.settle()
    world.check_end()
    return world


def _move(world: World, chance: random.Random) -> None:
    boxes = world.boxes()
    id_ = chance.choice(boxes).id if boxes else ""
    match chance.choice(("create", "destroy", "pause", "resume", "extend", "look", "run", "run")):
        case "create":
            key = chance.choice(("k1", "k2", None))
            wait = chance.choice((0.0, 5.0, 20.0))
            world.create(key, wait=wait, env=key == "k2")
        case "destroy" if boxes and chance.random() < 0.3:
            world.destroy(id_)
        case "pause" if boxes:
            world.asked(lambda: world.router.pause(TENANT, id_))
        case "resume" if boxes:
            world.asked(lambda: world.router.resume(TENANT, id_))
        case "extend" if boxes:
            ttl = chance.choice((60, 120, 300))
            world.asked(lambda: world.router.extend(TENANT, id_, ttl, shorten=True))
        case "look" if boxes:
            world.asked(lambda: world.router.get(TENANT, id_, refresh=True))
        case _:
            world.run_until(world.clock.now() + chance.randint(1, 60_000))


@pytest.mark.parametrize("batch", range(SEEDS // BATCH))
def test_random_lives_end_with_nothing_left(batch: int, request: pytest.FixtureRequest) -> None:
    count = LONG_SEEDS if request.config.getoption("--long") else SEEDS
    step = count // (SEEDS // BATCH)
    for seed in range(batch * step, (batch + 1) * step):
        try:
            live(seed)
        except Exception as failed:
            raise AssertionError(f"seed {seed}: {failed!r}") from failed
