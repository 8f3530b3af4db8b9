"""Faults that the grid or the random lives found, each as the shortest trace that shows it."""

from __future__ import annotations

from sandbox_router.model.sandbox import Sandbox
from tests.sim.scenario import Scenario, run
from tests.sim.world import TENANT, World


def test_one_look_that_does_not_find_a_booting_instance_is_no_proof_that_it_is_gone() -> None:
    world = World(limits=False, lag_ms=5_000)
    alpha = world.providers["alpha"]
    alpha.boots_ms = 3_000
    alpha.script("get", "ok", "absent", "absent")
    reply = world.create()
    assert reply is not None
    assert reply.status == 201
    assert [box.id for box in world.living()] == ["alpha-1"]
    world.settle()
    world.check_end()


def test_an_instance_that_dies_while_it_boots_is_gone_after_two_looks() -> None:
    world = World(limits=False, lag_ms=5_000)
    alpha = world.providers["alpha"]
    alpha.boots_ms = 3_000
    alpha.on_create = lambda order: None
    reply = world.create(wait=1)
    assert reply is not None
    world.living()[0].dead_at = world.clock.now()
    world.run_until(world.clock.now() + 10_000)
    (box,) = world.boxes()
    assert [a.outcome for a in box.attempts] == ["gone", "created"]
    assert box.state == "running"


def test_a_worker_that_slept_does_not_bring_back_what_was_destroyed_meanwhile() -> None:
    """It asked, slept over its lease, and told of an instance that its successor had found, served
    and destroyed: a destroyed record had an instance again."""
    run(Scenario(rival="31 destroy", rival_at=7, ttl=600))


def test_who_read_a_record_while_another_worked_on_it_cannot_claim_it_afterwards() -> None:
    """The other's release left epoch and news as they were: the claim took what was read, an
    attempt under way, and the key got a second answer. Seen by sixteen clients of a real router."""
    world = World(limits=False)
    world.create(wait=0)
    (box,) = world.boxes()
    store, lifecycle = world.router._store, world.router._lives[Sandbox]
    claimed = store.claim(box, 30_000)
    assert claimed is not None
    during = store.load(Sandbox, box.id)
    lifecycle.drive(claimed)
    assert during is not None
    assert store.claim(during, 30_000) is None
    assert world.boxes()[0].state == "running"


def test_a_message_about_a_record_that_is_held_waits_until_the_lease_ends() -> None:
    """A wish had made it due, there was nothing to decide, and its holder was dead: every message
    sent the next one at once, until the lease was over."""
    world = World(limits=False)
    world.providers["alpha"].boots_ms = 60_000
    world.crash_at = 11  # it was made and is not ready: the process waits for it
    world.create()
    (box,) = world.boxes()
    held = box.lease_until
    assert held > world.clock.now()
    world.router.idle(TENANT, box.id, 60)
    before = len(world.points)
    while world.clock.now() < held and len(world.points) - before < 200:
        world.step()
    assert world.clock.now() >= held, "one message after the other, and no time passes"
