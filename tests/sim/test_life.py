"""The main ways of a sandbox's life on simulated time."""

from __future__ import annotations

import json

from tests.sim.world import LATE_MS, World


def test_a_create_runs_with_two_store_round_trips_and_one_provider_call() -> None:
    world = World()
    reply = world.create(ttl=3600)
    assert reply is not None
    assert reply.status == 201
    assert world.points == [
        *["table.get"] * 2,
        "table.write",
        "table.write.done",
        "alpha.create",
        "alpha.create.done",
        "table.write",
        "table.write.done",
    ]


def test_a_replay_answers_the_same_bytes_without_any_provider_call() -> None:
    world = World()
    first = world.create()
    calls = len(world.providers["alpha"].calls)
    world.clock.sleep(30)
    again = world.create()
    assert first is not None
    assert again is not None
    assert (again.status, again.body, again.replayed) == (201, first.body, True)
    assert len(world.providers["alpha"].calls) == calls


def test_the_ttl_ends_it_on_time() -> None:
    world = World()
    reply = world.create(ttl=45)
    assert reply is not None
    (vendor,) = world.living()
    expires = world.boxes()[0].expires_at
    world.settle()
    world.check_end()
    assert vendor.dead_at is not None
    assert expires <= vendor.dead_at <= expires + LATE_MS


def test_capacity_fails_over_and_the_answer_shows_both_attempts() -> None:
    world = World()
    world.providers["alpha"].script("create", "capacity")
    reply = world.create()
    assert reply is not None
    body = json.loads(reply.body)
    assert reply.status == 201
    assert [(a["pool_id"], a["outcome"], a["class"]) for a in body["attempts"]] == [
        ("alpha", "refused", "capacity"),
        ("beta", "created", None),
    ]


def test_a_refusal_of_permission_asks_nobody_else_and_is_replayed() -> None:
    world = World()
    world.providers["alpha"].script("create", "forbidden")
    first, again = world.create(), world.create()
    assert first is not None
    assert again is not None
    assert first.status == 403
    assert again.body == first.body
    assert again.replayed
    assert world.providers["beta"].calls == []


def test_a_lost_answer_ends_in_one_instance() -> None:
    world = World()
    world.providers["alpha"].script("create", "lost")
    reply = world.create()
    assert reply is not None
    assert reply.status == 201
    assert len(world.living()) == 1
    assert world.providers["beta"].calls == []


def test_a_late_instance_is_destroyed_and_never_handed_out() -> None:
    world = World(idempotent=False)
    world.providers["alpha"].script("create", "late")
    reply = world.create(ttl=600, wait=25)
    assert reply is not None
    assert json.loads(reply.body)["pool_id"] == "beta"
    (late,) = world.providers["alpha"].boxes.values()
    world.run_until(late.born_at + 31_000)
    assert late.dead_at is not None
    assert late.deleted_by_us
    assert len(world.living()) == 1
    world.settle()
    world.check_end()


def test_three_passes_then_503_and_the_key_is_free_again() -> None:
    world = World()
    for provider in world.providers.values():
        provider.script("create", *["capacity"] * 3)
    first = world.create(wait=25)
    assert first is not None
    assert first.status == 503
    assert len(json.loads(first.body)["attempts"]) == 6
    again = world.create(wait=25)
    assert again is not None
    assert again.status == 201
    assert not again.replayed


def test_a_broken_credential_is_never_the_clients_403_and_leaves_routing() -> None:
    world = World()
    world.providers["alpha"].script("create", "unauthorized")
    reply = world.create("k1")
    assert reply is not None
    assert json.loads(reply.body)["pool_id"] == "beta"
    second = world.create("k2")
    assert second is not None
    assert [c["pool_id"] for c in json.loads(second.body)["route"]] == ["beta"]
    world.router.heal()
    third = world.create("k3")
    assert third is not None
    assert json.loads(third.body)["pool_id"] == "alpha"


def test_pause_resume_and_extend_move_state_and_deadline() -> None:
    world = World()
    reply = world.create(ttl=120)
    assert reply is not None
    assert reply.record_id is not None
    paused = world.router.pause("acme", reply.record_id)
    assert (paused.state, paused.kept) == ("paused", "memory")
    assert world.router.pause("acme", reply.record_id).state == "paused"
    assert world.router.resume("acme", reply.record_id).state == "running"
    longer = world.router.extend("acme", reply.record_id, 600, shorten=False)
    assert longer.expires_at == world.clock.now() + 600_000
    (vendor,) = world.living()
    assert vendor.ends_at == world.clock.now() + 660_000
    world.settle()
    world.check_end()
    assert vendor.dead_at is not None
    assert longer.expires_at <= vendor.dead_at <= longer.expires_at + LATE_MS


def test_a_destroy_during_the_create_wins() -> None:
    world = World()
    seen: list[str] = []

    def wish(order: object) -> None:
        (box,) = world.boxes()
        seen.append(box.id)
        world.router.destroy("acme", box.id)

    world.providers["alpha"].on_create = wish
    reply = world.create()
    assert reply is not None
    assert reply.status == 409
    assert len(seen) == 1
    world.settle()
    world.check_end()


def test_what_the_provider_lost_is_lost_after_two_looks() -> None:
    world = World(lag_ms=5000)
    reply = world.create(ttl=600)
    assert reply is not None
    assert reply.record_id is not None
    world.clock.sleep(10)
    world.living()[0].dead_at = world.clock.now()
    assert world.router.get("acme", reply.record_id, refresh=True).state == "running"
    world.run_until(world.clock.now() + 8_000)
    assert world.boxes()[0].state == "lost"
    world.settle()
    world.check_end()


def test_without_waiting_no_provider_is_called_in_process() -> None:
    world = World()
    reply = world.create(wait=0, env=True)
    assert reply is not None
    assert reply.status == 202
    assert world.providers["alpha"].calls == []
    world.run_until(world.clock.now() + 2_000)
    (box,) = world.boxes()
    assert box.state == "running"
    assert box.sealed is None
    (vendor,) = world.living()
    assert vendor.order.cargo.env["TOKEN"].reveal() == "CANARY-1"
