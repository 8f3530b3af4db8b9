"""A snapshot is taken once per key, kept until its end, gone for certain, and made a sandbox of."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from sandbox_router.lifecycle.create import CreateRequest
from sandbox_router.lifecycle.listing import Filters
from sandbox_router.lifecycle.once import Reply
from sandbox_router.lifecycle.snapshots import SnapshotFilters, SnapshotRequest
from sandbox_router.model.failure import (
    Invalid,
    KeyReused,
    NotFound,
    NotRunning,
    Quota,
    RateLimited,
    Unknown,
    Unsupported,
)
from sandbox_router.model.snapshot import Snapshot
from sandbox_router.model.spec import Spec
from tests.fakes.provider import Shot
from tests.sim.world import SHAPE, TENANT, WRITERS
from tests.unit.core.scenes import Scene

HOUR = 3600


def take(scene: Scene, sandbox_id: str, key: str | None = "s1", **more: Any) -> Reply:
    """A client's request for a snapshot kept for an hour."""
    wait = more.pop("wait", 20.0)
    request = SnapshotRequest("req-s", repr((sandbox_id, more)).encode(), key=key)
    request = replace(request, **{"ttl_seconds": HOUR, **more})
    return scene.router.take_snapshot(TENANT, sandbox_id, request, wait_seconds=wait)


def taken(scene: Scene, **more: Any) -> Snapshot:
    """A snapshot that is ready, of a new sandbox."""
    reply = take(scene, scene.made(ttl_seconds=7200).id, **more)
    assert reply.status == 201
    return scene.router.snapshot(TENANT, reply.record_id or "")


def shots(scene: Scene) -> list[Shot]:
    """Captures that exist at the vendor now."""
    return scene.vendor().stored()


def test_a_snapshot_of_a_running_sandbox_is_ready_and_says_what_it_holds() -> None:
    scene = Scene()
    box = scene.made()
    reply = take(scene, box.id)
    found = json.loads(reply.body)
    assert reply.status == 201
    assert (found["state"], found["sandbox_id"]) == ("ready", box.id)
    assert (found["contents"], found["interrupts"]) == ("disk", "pause")
    assert (found["pool_id"], found["size"]["vcpu"]) == ("alpha", 2)
    assert [shot.name[:31] for shot in shots(scene)] == [found["id"]]
    assert scene.seen(box.id).state == "running"


def test_the_same_request_again_gets_the_first_answer_and_takes_nothing() -> None:
    scene = Scene()
    box = scene.made()
    first = take(scene, box.id)
    before = scene.calls()
    again = take(scene, box.id)
    assert (again.status, again.body, again.replayed) == (201, first.body, True)
    assert scene.calls() == before


def test_a_replay_is_answered_though_the_sandbox_is_gone() -> None:
    scene = Scene()
    box = scene.made()
    first = take(scene, box.id)
    scene.router.destroy(TENANT, box.id)
    assert take(scene, box.id).body == first.body
    with pytest.raises(NotRunning):
        take(scene, box.id, "s2")


def test_a_key_is_for_one_request_whatever_it_is_of() -> None:
    scene = Scene()
    reply = scene.ask("k1")
    sandbox_id = reply.record_id or ""
    with pytest.raises(KeyReused):
        take(scene, sandbox_id, "k1")
    take(scene, sandbox_id, "s1")
    with pytest.raises(KeyReused):
        take(scene, sandbox_id, "s1", contents="memory")
    assert len(shots(scene)) == 1


@pytest.mark.parametrize("idempotent", [True, False])
def test_a_lost_answer_is_settled_on_one_capture(idempotent: bool) -> None:
    scene = Scene(idempotent=idempotent)
    box = scene.made()
    scene.vendor().script("capture", "lost")
    reply = take(scene, box.id)
    assert reply.status == 201
    assert len(shots(scene)) == 1
    assert json.loads(reply.body)["attempts"][0]["outcome"] == "adopted"


def test_what_is_asked_and_never_appears_fails_and_leaves_nothing() -> None:
    scene = Scene(idempotent=False)
    box = scene.made(ttl_seconds=7200)
    scene.vendor().script("capture", "cut")
    reply = take(scene, box.id)
    assert reply.status == 202
    scene.on(700)
    found = scene.router.snapshot(TENANT, reply.record_id or "")
    assert (found.state, found.state_reason) == ("failed", "unknown_outcome")
    scene.on(700)
    assert scene.router.snapshot(TENANT, found.id).settled


def test_what_appears_late_is_ready_late() -> None:
    scene = Scene(idempotent=False)
    box = scene.made(ttl_seconds=7200)
    scene.vendor().late_ms = 90_000
    scene.vendor().script("capture", "late")
    reply = take(scene, box.id)
    scene.on(150)
    assert scene.router.snapshot(TENANT, reply.record_id or "").state == "ready"
    assert len(shots(scene)) == 1


def test_what_appears_too_late_is_found_by_reconcile_and_destroyed() -> None:
    scene = Scene(idempotent=False, nets=WRITERS | {"reconcile"})
    box = scene.made(ttl_seconds=7200)
    scene.vendor().late_ms = 620_000
    scene.vendor().script("capture", "late")
    take(scene, box.id)
    scene.on(1500)
    assert scene.vendor().shots
    assert shots(scene) == []


def test_a_refusal_is_the_answer_and_a_passing_one_frees_the_key() -> None:
    scene = Scene()
    box = scene.made()
    scene.vendor().answers["capture"] = [RateLimited(retry_after=7)]
    refused = take(scene, box.id)
    assert (refused.status, refused.retry_after) == (RateLimited.status, 7)
    assert take(scene, box.id).status == 201
    scene.vendor().answers["capture"] = [Quota()]
    assert take(scene, box.id, "s2").status == Quota.status
    assert len(shots(scene)) == 1


def test_of_a_sandbox_the_provider_lost_there_is_surely_none() -> None:
    scene = Scene()
    box = scene.made()
    (instance,) = scene.vendor().boxes.values()
    instance.dead_at = scene.clock.now()
    reply = take(scene, box.id)
    assert (reply.status, json.loads(reply.body)["code"]) == (409, "instance_gone")
    scene.on(30)
    assert scene.seen(box.id).state == "lost"
    assert take(scene, scene.made().id).status == 201  # under the key that is free again


def test_a_slow_snapshot_is_202_and_then_ready() -> None:
    scene = Scene()
    scene.vendor().captures_ms = 40_000
    reply = take(scene, scene.made().id)
    assert (reply.status, reply.retry_after) == (202, 1)
    scene.on(60)
    assert scene.router.snapshot(TENANT, reply.record_id or "").state == "ready"


def test_a_snapshot_that_the_provider_could_not_take_has_failed() -> None:
    scene = Scene()
    scene.vendor().captures_ms = 3_000
    scene.vendor().script("capture", "failed")
    reply = take(scene, scene.made().id)
    assert reply.status == 503
    assert scene.router.snapshots(TENANT, SnapshotFilters(), limit=10, cursor=None)[0][0].failed
    scene.on(30)
    assert shots(scene) == []


def test_without_waiting_no_provider_is_called_in_process() -> None:
    scene = Scene()
    box = scene.made()
    before = scene.calls()
    reply = take(scene, box.id, wait=0)
    assert (reply.status, scene.calls()) == (202, before)
    scene.on(5)
    assert scene.router.snapshot(TENANT, reply.record_id or "").state == "ready"


def test_a_snapshot_outlives_its_sandbox_and_ends_at_its_own_time() -> None:
    scene = Scene()
    found = taken(scene)
    scene.router.destroy(TENANT, found.sandbox_id)
    scene.on(HOUR - 10)
    assert len(shots(scene)) == 1
    scene.on(20)
    ended = scene.router.snapshot(TENANT, found.id)
    assert (ended.state, ended.state_reason, shots(scene)) == ("deleted", "expired", [])


def test_deleted_is_said_only_when_the_provider_says_gone() -> None:
    scene = Scene()
    found = taken(scene)
    scene.vendor().script("destroy_capture", "kept")
    assert scene.router.destroy_snapshot(TENANT, found.id).state == "deleting"
    scene.on(5)
    assert scene.router.snapshot(TENANT, found.id).state == "deleted"
    assert shots(scene) == []
    assert scene.router.destroy_snapshot(TENANT, found.id).state == "deleted"


def test_another_tenants_snapshot_is_none() -> None:
    scene = Scene()
    found = taken(scene)
    for call in (scene.router.snapshot, scene.router.destroy_snapshot):
        for tenant, snapshot_id in (("rival", found.id), (TENANT, "snap-none")):
            with pytest.raises(NotFound):
                call(tenant, snapshot_id)
    with pytest.raises(NotFound):
        scene.router.get(TENANT, found.id)
    with pytest.raises(Invalid):
        scene.router.create("rival", request_of(scene, found), wait_seconds=1)


def request_of(scene: Scene, found: Snapshot, **spec: Any) -> Any:
    """A create from a snapshot."""
    wanted = Spec(SHAPE, snapshot_id=found.id, sized=False)
    return CreateRequest(replace(wanted, **spec), b"x", "req-2")


def test_a_list_shows_a_tenants_snapshots_and_its_cursor_opens_no_other_list() -> None:
    scene = Scene()
    box = scene.made()
    made = []
    for _ in range(3):
        made.append(take(scene, box.id, None).record_id)
        scene.on(1)
    page, cursor = scene.router.snapshots(TENANT, SnapshotFilters(), limit=2, cursor=None)
    rest, end = scene.router.snapshots(TENANT, SnapshotFilters(), limit=2, cursor=cursor)
    assert [found.id for found in (*page, *rest)] == made[::-1]
    assert end is None
    of = SnapshotFilters(sandbox_id="sbx-other")
    assert scene.router.snapshots(TENANT, of, limit=2, cursor=None)[0] == []
    with pytest.raises(Invalid):
        scene.router.list(TENANT, Filters(), limit=2, cursor=cursor)
    boxes, _ = scene.router.list(TENANT, Filters(), limit=9, cursor=None)
    assert [found.id for found in boxes] == [box.id]


def test_a_capture_without_a_record_is_destroyed_by_reconcile_and_anothers_is_left() -> None:
    scene = Scene(nets=WRITERS | {"reconcile"})
    box = scene.made(ttl_seconds=7200)
    ours = taken(scene)
    for item in scene.memory.items():
        if ours.id in str(item["pk"]):
            scene.memory.replace((str(item["pk"]), str(item["sk"])), None)
    vendor, server = scene.vendor(), scene.seen(box.id).server
    assert server is not None
    vendor.capture(server.instance_id or "", "snap-" + "a" * 26 + "-" + "b" * 20, "disk", timeout=9)
    vendor.capture(server.instance_id or "", "somebody's", "disk", timeout=9)
    scene.on(1300)
    assert [shot.name[:9] for shot in shots(scene)] == ["snap-aaaa", "somebody'"]


def test_a_capture_that_stops_its_source_is_seen_at_once() -> None:
    scene = Scene()
    scene.vendor().captures_stop = True
    profile = scene.pools.pool("alpha").profile
    profile.abilities["snapshots"]["interrupts"] = "stop"  # type: ignore[index]
    box = scene.made()
    take(scene, box.id)
    scene.on(0.1)
    assert (scene.seen(box.id).state, scene.seen(box.id).state_reason) == (
        "paused",
        "provider_stopped",
    )


def test_a_source_that_was_seen_paused_while_it_was_captured_is_looked_at_again() -> None:
    scene = Scene()
    box = scene.made()
    (instance,) = scene.vendor().boxes.values()

    def seen() -> None:
        instance.state = "paused"
        assert scene.router.get(TENANT, box.id, refresh=True).state == "paused"
        instance.state = "running"

    scene.moment, scene.between = (lambda point: point == "alpha.capture.done"), seen
    assert take(scene, box.id).status == 201
    scene.on(0.1)
    assert scene.seen(box.id).state == "running"
    assert ("get", instance.id) in scene.vendor().calls


def test_a_snapshot_that_killed_its_source_has_it_looked_at() -> None:
    scene = Scene(idempotent=False)
    box = scene.made()
    scene.vendor().script("capture", "cut")
    scene.vendor().boxes[box.attempts[0].instance_id or ""].dead_at = scene.clock.now() + 1
    scene.clock.sleep(1)
    scene.vendor().answers["capture"] = [Unknown()]
    take(scene, box.id)
    scene.on(0.1)
    assert scene.seen(box.id).missing_since is not None
    scene.on(10)
    assert scene.seen(box.id).state == "lost"


def test_a_provider_without_the_ability_says_so() -> None:
    scene = Scene()
    box = scene.made()
    with pytest.raises(Unsupported, match="disk or memory"):
        take(scene, box.id, contents="registers")
    scene.pools.pool("alpha").profile.abilities["snapshots"] = None  # type: ignore[index]
    with pytest.raises(Unsupported, match="no snapshots"):
        take(scene, box.id)
