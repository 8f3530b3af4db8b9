"""Two at one record: the slow worker whose lease ended, and who took over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from sandbox_router.model.record import Outcome
from sandbox_router.model.sandbox import State
from sandbox_router.ports import Order
from sandbox_router.store import Store
from tests.sim.world import TENANT
from tests.unit.core.scenes import Scene, body

LEASE = 30


def slow(scene: Scene, seconds: float, meanwhile: Callable[[], object]) -> None:
    """Alpha's first create takes this long, and meanwhile something happens."""

    def wait(order: Order) -> None:
        scene.vendor().on_create = lambda order: None
        scene.clock.sleep(seconds)
        meanwhile()

    scene.vendor().on_create = wait


def advanced(scene: Scene) -> None:
    scene.router.advance(scene.box().id)


def test_while_the_lease_lasts_nobody_else_calls_the_provider() -> None:
    scene = Scene()
    slow(scene, LEASE - 1, lambda: advanced(scene))
    assert scene.ask(wait=25).status == 201
    assert [op for op, _ in scene.vendor().calls] == ["create"]


def test_who_takes_over_asks_under_the_same_identity_and_both_show_one_instance() -> None:
    scene = Scene()
    slow(scene, LEASE + 1, lambda: advanced(scene))
    first = scene.ask(wait=25)
    assert (first.status, scene.ask().body) == (201, first.body)
    assert len({subject for op, subject in scene.vendor().calls if op == "create"}) == 1
    assert len(scene.living()) == 1
    assert scene.box().epoch >= 2
    scene.settle()
    scene.check_edges()


def test_the_slow_one_tells_what_it_made_and_that_is_what_serves() -> None:
    scene = Scene(idempotent=False)
    slow(scene, LEASE + 1, lambda: advanced(scene))
    reply = scene.ask(wait=25)
    scene.until(State.RUNNING, seconds=2)
    assert len(scene.living()) == 1
    assert scene.vendor("beta").calls == []
    assert scene.ask().record_id == reply.record_id
    assert scene.box().attempts[0].instance_id == scene.living()[0].id


def test_what_the_slow_one_made_too_late_is_destroyed_by_the_record_and_not_by_it() -> None:
    scene = Scene(idempotent=False)

    def elsewhere() -> None:
        advanced(scene)  # in doubt, looked up
        scene.clock.sleep(21)
        advanced(scene)  # settled: the next pool serves
        assert scene.box().state is State.RUNNING
        destroys.append(len(scene.vendor().times("destroy")))

    destroys: list[int] = []
    slow(scene, LEASE + 1, elsewhere)
    reply = scene.ask(wait=25)
    assert (reply.status, body(reply)["pool_id"]) == (201, "beta")
    assert destroys == [0]
    scene.on(5)
    box = scene.box()
    assert [a.outcome for a in box.attempts] == [Outcome.GONE, Outcome.CREATED]
    assert [len(scene.vendor(name).living()) for name in ("alpha", "beta")] == [0, 1]
    assert scene.ask().body == reply.body


def test_what_the_slow_one_made_after_a_destroy_is_destroyed_too() -> None:
    scene = Scene(idempotent=False)

    def ended() -> None:
        scene.router.destroy(TENANT, scene.box().id)
        scene.clock.sleep(21)
        advanced(scene)
        assert scene.box().state is State.DESTROYED

    slow(scene, LEASE + 1, ended)
    assert scene.ask(wait=25).status == 409
    scene.on(5)
    assert scene.living() == []
    assert scene.box().settled


def test_an_instance_told_while_a_look_up_does_not_see_it_yet_is_not_forgotten() -> None:
    scene = Scene(idempotent=False, lag_ms=60_000)
    scene.crash_at = 6  # the instance exists; the one who knows is cut off, and comes back below
    assert scene.create(ttl=3600) is None
    scene.clock.sleep(LEASE)
    box, (vendor,) = scene.box(), scene.living()
    made: dict[str, Any] = {"outcome": Outcome.CREATED, "instance_id": vendor.id, "ready": True}
    known = replace(box.attempts[0], **made)
    scene.between = lambda: Store(scene.memory, scene.clock, scene.ids).tell(box, known)
    scene.moment = lambda point: point == "alpha.find"
    advanced(scene)
    assert scene.until(State.RUNNING, seconds=2).attempts[0].instance_id == vendor.id


def test_a_wish_that_comes_during_a_pause_is_seen_before_anything_is_decided() -> None:
    scene = Scene()
    id_ = scene.made().id
    scene.between = lambda: scene.router.destroy(TENANT, id_)
    scene.moment = lambda point: point == "alpha.pause"
    scene.router.pause(TENANT, id_)
    scene.until(State.DESTROYED, seconds=5)
    assert scene.living() == []
    states = [i["state"] for i in scene.memory.items() if i.get("event") == "state"]
    assert "paused" not in states


@pytest.mark.parametrize("moment", range(1, 12))
@pytest.mark.parametrize("verb", ["pause", "extend", "destroy"])
def test_two_wishes_at_once_are_both_done_wherever_they_interleave(moment: int, verb: str) -> None:
    scene = Scene()
    id_ = scene.made().id
    start = scene.ticks
    scene.between = lambda: scene.router.extend(TENANT, id_, 7200, shorten=False)
    scene.moment = lambda point: scene.ticks == start + moment
    calls = {
        "pause": lambda: scene.router.pause(TENANT, id_),
        "extend": lambda: scene.router.extend(TENANT, id_, 9000, shorten=True),
        "destroy": lambda: scene.router.destroy(TENANT, id_),
    }
    scene.asked(calls[verb])
    scene.between = None
    scene.on(40)
    scene.check_edges()
    box = scene.seen(id_)
    assert box.state is {"pause": State.PAUSED, "destroy": State.DESTROYED}.get(verb, State.RUNNING)
    assert (len(scene.living()) == 0) == (verb == "destroy")
    if box.wish_expiry is not None and verb != "destroy":
        assert box.expires_at == box.wish_expiry.value
        assert box.answered_expiry == box.wish_expiry.id
