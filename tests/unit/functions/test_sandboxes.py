"""Create, look, change, pause and destroy, through the handlers."""

from __future__ import annotations

import pytest

from sandbox_router.store import Store
from tests.unit.functions.world import NOBODY, REQUEST_ID, World, call, on


def test_a_create_answers_201_with_its_location(world: World) -> None:
    got = call("create_sandbox", body={"size": "2x4", "env": {"A": "b"}, "labels": {"team": "x"}})
    assert got.status == 201
    assert got.json["state"] == "running"
    assert got.json["env_names"] == ["A"]
    assert got.headers["location"] == f"/v/v1/sandboxes/{got.json['id']}"  # below the stage
    assert got.headers["x-request-id"] == REQUEST_ID
    assert float(got.headers["x-router-overhead-ms"]) >= 0
    assert got.headers["content-type"] == "application/json"
    assert "retry-after" not in got.headers
    assert "preference-applied" not in got.headers


def test_a_create_that_waits_for_nothing_answers_202(world: World) -> None:
    got = call("create_sandbox", body={}, headers={"Prefer": "wait=0"})
    assert got.status == 202
    assert got.json["state"] == "starting"
    assert got.headers["location"] == f"/v/v1/sandboxes/{got.json['id']}"  # below the stage
    assert int(got.headers["retry-after"]) >= 1
    assert got.headers["preference-applied"] == "wait=0"
    assert world.first.calls == []


@pytest.mark.parametrize("second", ["k-1", '"k-1"'])
def test_a_retry_is_replayed_byte_for_byte(world: World, second: str) -> None:
    first = call(
        "create_sandbox", body={"vcpu": 2, "memory_gib": 4}, headers={"Idempotency-Key": "k-1"}
    )
    again = call(
        "create_sandbox",
        body='{"memory_gib": 4.0, "vcpu": 2e0, "ttl_seconds": 3600, "provider": {}}',
        headers={"idempotency-key": second, "content-TYPE": "Application/JSON; charset=UTF-8"},
    )
    assert (again.status, again.data) == (201, first.data)
    assert again.headers["idempotent-replayed"] == "true"
    assert again.headers["location"] == first.headers["location"]
    assert "idempotent-replayed" not in first.headers
    assert len(world.first.boxes) == 1


def test_a_key_with_another_body_is_refused(world: World) -> None:
    call("create_sandbox", body={}, headers={"Idempotency-Key": "k"})
    got = call("create_sandbox", body={"size": "1x1"}, headers={"Idempotency-Key": "k"})
    assert (got.status, got.code) == (422, "idempotency_key_reused")


def test_the_default_size_said_or_left_out_is_the_same_request(world: World) -> None:
    first = call("create_sandbox", body={}, headers={"Idempotency-Key": "k"})
    again = call("create_sandbox", body={"size": "2x4"}, headers={"Idempotency-Key": "k"})
    assert again.data == first.data
    assert first.json["size"]["memory_gib"] == 4


def test_a_refusal_fails_over_and_the_attempts_show(world: World) -> None:
    world.first.script("create", "capacity")
    got = call("create_sandbox", body={})
    assert got.status == 201
    assert [(a["pool_id"], a["class"]) for a in got.json["attempts"]] == [
        ("pool-a", "capacity"),
        ("pool-b", None),
    ]


def test_permission_is_403_as_a_problem_with_attempts(world: World) -> None:
    world.first.script("create", "forbidden")
    got = call("create_sandbox", body={})
    assert (got.status, got.code) == (403, "provider_permission")
    assert got.json["attempts"][0]["class"] == "permission"
    assert "location" not in got.headers


def test_no_pool_is_503_with_retry_after(world: World) -> None:
    for account in (world.first, world.second):
        account.script("create", *["capacity"] * 9)
    got = call("create_sandbox", body={}, headers={"Prefer": "wait=25"})
    while got.status == 202:
        world.clock.sleep(1)
        sandbox_id = got.headers["location"].rpartition("/")[2]
        world.router.advance(sandbox_id)
        if on("get_sandbox", sandbox_id).json["state"] == "failed":
            return
    assert (got.status, got.code) == (503, "no_pool_available")
    assert int(got.headers["retry-after"]) >= 0


def test_what_no_pool_can_do_is_422_unsupported(world: World) -> None:
    got = call("create_sandbox", body={"size": "16x64"})
    assert (got.status, got.code) == (422, "unsupported")


def test_the_tenants_ttl_maximum_counts(world: World) -> None:
    from functions.edge import wiring
    from functions.edge.settings import Settings

    made = wiring.settings().state
    wiring.use(lambda _: world.router, Settings(state=made, max_ttl_seconds=100))
    got = call("create_sandbox", body={"ttl_seconds": 101})
    assert (got.status, got.json["field_errors"][0]["path"]) == (400, "ttl_seconds")
    assert call("create_sandbox", body={"ttl_seconds": 100}).status == 201


def test_get_shows_the_record_and_refresh_the_provider(world: World) -> None:
    sandbox_id = world.created()
    before = len(world.first.calls)
    got = on("get_sandbox", sandbox_id)
    assert (got.status, got.json["id"]) == (200, sandbox_id)
    assert len(world.first.calls) == before
    assert on("get_sandbox", sandbox_id, query={"refresh": "true"}).status == 200
    assert len(world.first.calls) > before


def test_a_list_is_paged_and_filtered(world: World) -> None:
    ids = []
    for n in range(3):
        world.clock.sleep(1)
        ids.append(world.created(labels={"n": str(n), "app": "x"}))
    page = call("list_sandboxes", query={"limit": "2"})
    assert [box["id"] for box in page.json["data"]] == ids[:0:-1]
    rest = call("list_sandboxes", query={"limit": "2", "cursor": page.json["next_cursor"]})
    assert [box["id"] for box in rest.json["data"]] == ids[:1]
    one = call("list_sandboxes", query={"label": ["n=1", "app=x"]})
    assert [box["id"] for box in one.json["data"]] == [ids[1]]
    none = call("list_sandboxes", query={"state": ["paused,lost", "failed"]})
    assert none.json == {"data": [], "next_cursor": None}
    running = call("list_sandboxes", query={"state": "running", "provider": "e2b"})
    assert len(running.json["data"]) == 3
    later = call("list_sandboxes", query={"created_after": "2100-01-01T00:00:00+01:00"})
    assert later.json["data"] == []


def test_a_forged_cursor_is_400(world: World) -> None:
    got = call("list_sandboxes", query={"cursor": "bm90IG91cnM="})
    assert (got.status, got.code) == (400, "invalid_request")


def test_patch_moves_the_end_and_replaces_labels(world: World) -> None:
    sandbox_id = world.created(labels={"a": "1"})
    got = on("update_sandbox", sandbox_id, body={"ttl_seconds": 7200, "labels": {"b": "2"}})
    assert got.status == 200
    assert got.json["labels"] == {"b": "2"}
    short = on("update_sandbox", sandbox_id, body={"ttl_seconds": 60})
    assert 400 <= short.status < 500
    assert on("update_sandbox", sandbox_id, body={"ttl_seconds": 60, "shorten": True}).status == 200


def test_patch_does_not_say_done_before_the_provider_has_moved_the_end(world: World) -> None:
    sandbox_id = world.created()
    before = on("get_sandbox", sandbox_id).json["expires_at"]
    world.first.script("extend", "cut")
    got = on("update_sandbox", sandbox_id, body={"ttl_seconds": 7200})
    assert (got.status, got.json["expires_at"]) == (202, before)
    world.clock.sleep(2)
    world.router.advance(sandbox_id)
    assert on("get_sandbox", sandbox_id).json["expires_at"] > before


def test_pause_and_resume_say_on_the_way_until_they_are_done(world: World) -> None:
    sandbox_id = world.created()
    for operation, done in (("pause", "paused"), ("resume", "running")):
        world.first.script(operation, "cut")
        assert on(f"{operation}_sandbox", sandbox_id, body={}).status == 202
        world.clock.sleep(2)
        world.router.advance(sandbox_id)
        assert on("get_sandbox", sandbox_id).json["state"] == done
        assert on(f"{operation}_sandbox", sandbox_id, body={}).status == 200


def test_a_wish_behind_somebody_elses_claim_is_not_said_to_be_done(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox_id = world.created()
    monkeypatch.setattr(Store, "claim", lambda *_: None)
    assert on("pause_sandbox", sandbox_id).status == 202
    assert on("update_sandbox", sandbox_id, body={"ttl_seconds": 7200}).status == 202


def test_pause_and_resume_say_what_survived(world: World) -> None:
    sandbox_id = world.created()
    paused = on("pause_sandbox", sandbox_id)
    assert paused.status in (200, 202)
    assert paused.json["state"] in ("pausing", "paused")
    assert "kept" in paused.json
    resumed = on("resume_sandbox", sandbox_id, body={})
    assert resumed.json["state"] in ("resuming", "running")


def test_destroy_ends_in_204_and_stays_there(world: World) -> None:
    sandbox_id = world.created()
    first = on("destroy_sandbox", sandbox_id)
    assert first.status in (202, 204)
    for _ in range(5):
        world.clock.sleep(10)
        world.router.advance(sandbox_id)
    again = on("destroy_sandbox", sandbox_id)
    assert (again.status, again.data) == (204, b"")
    assert "content-type" not in again.headers
    assert call("list_sandboxes").json["data"] == []
    assert len(call("list_sandboxes", query={"state": "destroyed"}).json["data"]) == 1


def test_a_dry_run_says_order_and_reasons(world: World) -> None:
    got = call("route_sandbox", body={"size": "2x4", "provider": {"only": ["pool-b"]}})
    assert [pool["pool_id"] for pool in got.json["candidates"]] == ["pool-b"]
    (refused,) = got.json["refused"]
    assert refused["pool_id"] == "pool-a"
    assert refused["reasons"]
    assert world.first.calls == world.second.calls == []


def test_a_sandbox_of_nobody_is_not_found(world: World) -> None:
    got = on("get_sandbox", NOBODY)
    assert (got.status, got.code) == (404, "not_found")
