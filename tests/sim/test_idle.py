"""Idle: what nobody uses ends; a call through us is a use."""

from __future__ import annotations

from sandbox_router.lifecycle.create import CreateRequest
from sandbox_router.model.sandbox import Sandbox
from sandbox_router.model.spec import Spec
from tests.sim.world import SHAPE, TENANT, World


def idle_world(seconds: int = 60, ttl: int = 3600) -> tuple[World, str]:
    world = World()
    spec = Spec(SHAPE, ttl_seconds=ttl, idle_seconds=seconds)
    reply = world.router.create(TENANT, CreateRequest(spec, b"{}", "req-1"), wait_seconds=20)
    assert reply.record_id is not None
    return world, reply.record_id


def test_it_ends_with_reason_idle_when_nobody_uses_it() -> None:
    world, _ = idle_world()
    start = world.clock.now()
    world.run_until(start + 59_000)
    assert len(world.living()) == 1
    world.run_until(start + 65_000)
    (box,) = world.boxes()
    assert (box.state, box.state_reason) == ("destroyed", "idle")


def test_a_call_in_time_keeps_it_for_another_idle_time() -> None:
    world, _ = idle_world()
    for _ in range(5):
        world.run_until(world.clock.now() + 50_000)
        world.router._wishes.touch(world.boxes()[0])
    assert world.boxes()[0].state == "running"
    world.run_until(world.clock.now() + 66_000)
    assert world.boxes()[0].state == "destroyed"


def test_a_use_is_written_down_at_most_twenty_times_an_idle_time() -> None:
    world, _ = idle_world(seconds=100)
    before = len(world.points)
    for _ in range(1000):
        world.clock.sleep(0.1)
        world.router._wishes.touch(world.boxes()[0])
    assert world.points[before:].count("table.write") <= 20


def test_a_paused_sandbox_is_not_idle_and_starts_anew_when_resumed() -> None:
    world, id_ = idle_world()
    world.router.pause(TENANT, id_)
    world.run_until(world.clock.now() + 300_000)
    assert world.boxes()[0].state == "paused"
    world.router.resume(TENANT, id_)
    world.run_until(world.clock.now() + 55_000)
    assert world.boxes()[0].state == "running"
    world.run_until(world.clock.now() + 10_000)
    assert world.boxes()[0].state_reason == "idle"


def test_the_idle_time_can_be_changed() -> None:
    world, id_ = idle_world(seconds=60)
    world.run_until(world.clock.now() + 50_000)
    changed = world.router.idle(TENANT, id_, 300)
    assert changed.idle_seconds == 300
    world.run_until(world.clock.now() + 290_000)
    assert world.boxes()[0].state == "running"
    world.run_until(world.clock.now() + 15_000)
    assert world.boxes()[0].state_reason == "idle"


def test_a_use_between_decision_and_save_prevents_the_end() -> None:
    world, _ = idle_world()
    (box,) = world.boxes()
    world.clock.at(box.active_at + 60_000)
    claimed = world.router._store.claim(box, 30_000)
    assert claimed is not None
    world.router._store.touch(claimed)
    world.router._lives[Sandbox].drive(claimed)
    assert world.boxes()[0].state == "running"
