"""A sandbox is made from a snapshot: in its pool, at its size, while it is there."""

from __future__ import annotations

import json

import pytest

from sandbox_router.model.failure import NotRunning, NotRunningYet, Unsupported
from sandbox_router.model.size import Shape
from tests.sim.world import TENANT, WRITERS
from tests.unit.core.scenes import Scene
from tests.unit.core.test_snapshots import request_of, shots, take, taken


def test_a_sandbox_is_made_from_a_snapshot_in_its_pool_and_nowhere_else() -> None:
    scene = Scene()
    found = taken(scene)
    scene.vendor().script("create", "capacity")
    reply = scene.ask(None, snapshot_id=found.id, sized=False, shape=Shape.of(9, 9))
    shown = json.loads(reply.body)
    assert (reply.status, shown["pool_id"], shown["image"]) == (201, "alpha", None)
    assert (shown["snapshot_id"], shown["size"]["vcpu"]) == (found.id, 2)
    route = scene.router.route(TENANT, request_of(scene, found).spec)
    assert [c.pool_id for c in route.candidates] == ["alpha"]
    assert [r.reasons for r in route.refused] == [("snapshot_elsewhere",)]


def test_a_snapshot_has_one_size() -> None:
    scene = Scene()
    found = taken(scene)
    with pytest.raises(Unsupported, match="size"):
        scene.ask(None, snapshot_id=found.id, sized=True, shape=Shape.of(4, 8))


def test_no_sandbox_is_made_from_what_is_not_ready_or_no_more() -> None:
    scene = Scene()
    scene.vendor().captures_ms = 40_000
    slow = take(scene, scene.made().id).record_id or ""
    with pytest.raises(NotRunningYet):
        scene.ask(None, snapshot_id=slow, sized=False)
    scene.router.destroy_snapshot(TENANT, slow)
    with pytest.raises(NotRunning):
        scene.ask(None, snapshot_id=slow, sized=False)


@pytest.mark.parametrize("wait", [20.0, 0.0])
def test_one_whose_capture_the_provider_lost_has_failed_once_that_is_sure(wait: float) -> None:
    scene = Scene(lag_ms=3_000)
    found = taken(scene)
    scene.on(10)
    (shot,) = shots(scene)
    shot.dead_at = scene.clock.now()
    reply = scene.ask("k9", snapshot_id=found.id, sized=False, wait=wait)
    if wait:
        assert (reply.status, json.loads(reply.body)["code"]) == (422, "snapshot_gone")
        assert scene.router.snapshot(TENANT, found.id).state == "ready", "nobody has looked yet"
    scene.on(10)
    lost = scene.router.snapshot(TENANT, found.id)
    assert (lost.state, lost.state_reason, lost.settled) == ("failed", "snapshot_gone", True)
    with pytest.raises(NotRunning, match="failed"):
        scene.ask(None, snapshot_id=found.id, sized=False)
    assert scene.router.destroy_snapshot(TENANT, found.id).over


@pytest.mark.parametrize("seen", [("ok",), ("absent",), ("cut",), ("absent",) * 9])
def test_a_refused_create_alone_loses_no_snapshot(seen: tuple[str, ...]) -> None:
    scene = Scene()
    found = taken(scene)
    scene.vendor().script("create", "invalid")
    scene.vendor().script("get_capture", *seen)
    looks = scene.vendor().calls.count(("get_capture", found.capture_id))
    assert scene.ask("k9", snapshot_id=found.id, sized=False).status == 422
    scene.on(30)
    kept = scene.router.snapshot(TENANT, found.id)
    assert (kept.state, kept.missing_since) == ("ready", None)
    assert scene.vendor().calls.count(("get_capture", found.capture_id)) > looks
    assert scene.ask(None, snapshot_id=found.id, sized=False).status == 201


def test_one_that_was_lost_without_a_word_and_comes_back_is_destroyed() -> None:
    scene = Scene(nets=WRITERS | {"reconcile"})
    found = taken(scene)
    (shot,) = shots(scene)
    shot.dead_at = scene.clock.now()
    scene.ask("k9", snapshot_id=found.id, sized=False)
    scene.on(10)
    shot.dead_at = None
    assert scene.router.snapshot(TENANT, found.id).state == "failed"
    scene.on(400)
    assert shots(scene) == []


def test_a_replayed_create_is_answered_though_its_snapshot_is_deleted() -> None:
    scene = Scene()
    found = taken(scene)
    first = scene.ask("k9", snapshot_id=found.id, sized=False)
    scene.router.destroy_snapshot(TENANT, found.id)
    again = scene.ask("k9", snapshot_id=found.id, sized=False)
    assert (again.body, again.replayed) == (first.body, True)
