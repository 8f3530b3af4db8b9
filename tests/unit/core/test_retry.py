"""A client's retry brings the secrets back: it is served at once, by the pool that was asked."""

from __future__ import annotations

from tests.sim.world import World

PROVIDER = 5
"""The port call of a create that is the provider's: two looks at health, the transaction, it."""


def test_a_retry_after_a_crash_asks_the_same_pool_again_and_does_not_wait() -> None:
    world = World()
    world.crash_at = PROVIDER
    assert world.create(env=True) is None
    world.run_until(world.clock.now() + 32_000)  # the lease ends, the worker looks without secrets
    (before,) = world.boxes()
    assert before.state == "starting"
    start = world.clock.now()
    reply = world.create(env=True)
    assert reply is not None
    assert reply.status == 201
    assert world.clock.now() - start < 1_000
    (box,) = world.boxes()
    assert [a.pool_id for a in box.attempts] == ["alpha"]
    assert len(world.living()) == 1


def test_a_retry_waits_for_what_is_due_before_its_patience_ends() -> None:
    world = World(idempotent=False)
    world.providers["alpha"].script("create", "cut")
    world.crash_at = PROVIDER + 1
    world.create(env=True)
    world.run_until(world.clock.now() + 33_000)
    reply = world.create(env=True, wait=25)
    assert reply is not None
    assert reply.status == 201, "settled and served by the next pool while the client waited"
    assert len(world.living()) == 1
