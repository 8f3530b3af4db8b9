"""One scenario: where the process dies, what the vendors do, what the client does next."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from tests.sim.world import LATE_MS, World

CRASHES = range(16)
"""0: no crash; n: at the n-th port call of the create and everything after it."""
ALPHA = (
    *("ok", "lost", "cut", "late", "capacity", "forbidden", "rate_limited"),
    *("ok capacity", "lost capacity"),
)
"""What the first pool's creates meet, one after the other."""
BETA = ("ok", "lost", "capacity")
RETRIES = (None, 0, 31)
"""The client repeats its create: never, at once, when the dead worker's lease is over (seconds)."""
DESTROYS = (None, 0, 40)
LEASE_MS, SWEEP_MS, WINDOW_MS = 30_000, 60_000, 600_000


@dataclass(frozen=True)
class Scenario:
    """The choices of one run."""

    crash: int
    alpha: str
    beta: str
    retry: int | None
    destroy: int | None
    idempotent: bool
    lag_ms: int
    env: bool


def everything() -> Iterator[Scenario]:
    """The whole grid, in a fixed order."""
    axes = (CRASHES, ALPHA, BETA, RETRIES, DESTROYS, (True, False), (0, 5_000), (False, True))
    for choice in itertools.product(*axes):
        yield Scenario(*choice)


def run(scenario: Scenario) -> World:
    """Run to the end and check everything."""
    world = World(idempotent=scenario.idempotent, lag_ms=scenario.lag_ms, limits=False)
    world.providers["alpha"].script("create", *scenario.alpha.split())
    world.providers["beta"].script("create", scenario.beta)
    world.crash_at = scenario.crash or None
    world.create(env=scenario.env)
    if scenario.retry is not None:
        world.run_until(world.clock.now() + scenario.retry * 1000)
        world.create(env=scenario.env)
    if scenario.destroy is not None:
        world.run_until(world.clock.now() + scenario.destroy * 1000)
        for box in world.boxes():
            world.destroy(box.id)
    world.settle()
    world.check_end()
    _check_instances(world)
    return world


def _check_instances(world: World) -> None:
    """I9, I22: how long each instance lived, and that a final refusal asked nobody else."""
    deadlines = {box.id: box.expires_at for box in world.boxes()}
    late = LATE_MS + (LEASE_MS + SWEEP_MS if world.crashes else 0)
    for provider in world.providers.values():
        for box in provider.boxes.values():
            deadline = deadlines[box.order.tags["constal-sandbox-id"]]
            assert box.dead_at is not None
            if box.born_at <= deadline:
                assert box.dead_at <= deadline + late, f"{(box.dead_at - deadline) / 1000} s late"
    for record in world.boxes():
        refused = [attempt.code for attempt in record.attempts[:-1]]
        assert "provider_permission" not in refused, "another pool was asked after a 403"
