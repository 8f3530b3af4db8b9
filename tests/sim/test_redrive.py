"""Messages that come again, whenever and in whatever order: a dead-letter queue may be redriven."""

from __future__ import annotations

import random

import pytest

from sandbox_router.model.sandbox import State
from tests.sim.lives import live
from tests.sim.world import TENANT, World

UNKNOWN = ("sbx-" + "a" * 26, "snap-" + "a" * 26, "")


def redriven(world: World, seed: int) -> None:
    """Every message there may ever have been, twice over, and some about nothing we know."""
    ids = [record.id for record in world.records()] * 2 + [*UNKNOWN]
    random.Random(seed).shuffle(ids)
    for number, id_ in enumerate(ids):
        world.queue.send(("create", "teardown")[number % 2], id_)
        world.router.advance(id_)
    for queue in ("teardown", "create"):
        while found := world.queue.receive(queue, 10, 120, world.clock.now()):
            for message in found:
                world._handle(message)


@pytest.mark.parametrize("seed", range(900_000, 900_020))
def test_once_all_is_over_a_redrive_calls_nobody_and_changes_nothing(seed: int) -> None:
    world = live(seed, 15)
    items, calls = world.memory.items(), world._vendor_calls()
    redriven(world, seed)
    assert world.memory.items() == items
    assert world._vendor_calls() == calls


def test_a_redrive_in_the_middle_of_a_life_ends_nothing_early() -> None:
    world = World(limits=False)
    reply = world.create(ttl=600)
    assert reply is not None
    world.router.pause(TENANT, reply.record_id or "")
    items, calls = world.memory.items(), world._vendor_calls()
    redriven(world, 1)
    assert world.memory.items() == items
    assert world._vendor_calls() == calls
    (box,) = world.boxes()
    assert box.state is State.PAUSED
    world.settle()
    world.check_end()


def test_a_redrive_alone_ends_what_was_due_long_ago_also_in_an_outage() -> None:
    world = World(limits=False, nets=frozenset())
    world.create("k1", ttl=30)
    world.create("k2", ttl=30, wait=0)
    world.clock.sleep(3_600)
    world.providers["alpha"].script("destroy", "outage", "cut")
    world.nets = frozenset({"queue"})
    redriven(world, 2)
    world.settle()
    world.check_end()
