"""Take, list, look at, delete snapshots and create from them, through the handlers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from functions import catalog
from sandbox_router.model.failure import Gone
from tests.unit.functions.test_catalog import conforms
from tests.unit.functions.world import Got, World, call, event, invoke, on

NONE = "snap-" + "a" * 26


def take(sandbox_id: str, body: Any = None, key: str | None = None, **more: Any) -> Got:
    """A snapshot is asked for."""
    headers = {"Idempotency-Key": key} if key else {}
    headers |= more.pop("headers", {})
    return on("take_snapshot", sandbox_id, body=body, headers=headers, **more)


def of(name: str, snapshot_id: str, **more: Any) -> Got:
    """An operation of one snapshot."""
    return call(name, path={"snapshot_id": snapshot_id}, **more)


def complaint(got: Got) -> tuple[int, str, str]:
    """Status, code, and the field complained about."""
    return got.status, got.code, got.json["field_errors"][0]["path"]


def test_a_snapshot_is_201_with_its_location_below_the_stage(world: World) -> None:
    sandbox_id = world.created()
    got = take(sandbox_id)
    assert (got.status, got.json["state"]) == (201, "ready")
    assert got.headers["location"] == f"/v/v1/snapshots/{got.json['id']}"
    assert "retry-after" not in got.headers
    assert (got.json["sandbox_id"], got.json["pool_id"]) == (sandbox_id, "pool-a")
    assert (got.json["contents"], got.json["interrupts"]) == ("memory", "pause")
    assert (got.json["size"]["vcpu"], got.json["size"]["memory_gib"]) == (2, 4)
    assert of("get_snapshot", got.json["id"]).json == got.json
    (shot,) = world.first.stored()
    assert shot.contents == "memory"


def test_one_that_waits_for_nothing_is_202_and_reaches_nobody(world: World) -> None:
    sandbox_id = world.created()
    before = len(world.first.calls)
    got = take(sandbox_id, headers={"Prefer": "wait=0"})
    assert (got.status, got.json["state"], got.json["attempts"]) == (202, "creating", [])
    assert got.headers["location"] == f"/v/v1/snapshots/{got.json['id']}"
    assert int(got.headers["retry-after"]) >= 1
    assert got.headers["preference-applied"] == "wait=0"
    assert len(world.first.calls) == before
    world.router.advance(got.json["id"])
    assert of("get_snapshot", got.json["id"]).json["state"] == "ready"


def test_a_retry_is_replayed_byte_for_byte(world: World) -> None:
    sandbox_id = world.created()
    first = take(sandbox_id, key="k")
    calls = len(world.first.calls)
    said = {"contents": None, "ttl_seconds": 7 * 86_400}
    for body in (None, {}, said):  # a default said or left out is the same
        again = take(sandbox_id, body, '"k"')
        assert (again.status, again.data) == (201, first.data)
        assert again.headers["idempotent-replayed"] == "true"
        assert again.headers["location"] == first.headers["location"]
    assert "idempotent-replayed" not in first.headers
    assert len(world.first.calls) == calls


def test_a_key_is_for_one_body_of_one_sandbox_of_one_operation(world: World) -> None:
    sandbox_id, other = world.created(), world.created()
    take(sandbox_id, key="k")
    found = [
        take(sandbox_id, {"ttl_seconds": 60}, "k"),
        take(other, key="k"),
        call("create_sandbox", body={}, headers={"Idempotency-Key": "k"}),
    ]
    assert {(got.status, got.code) for got in found} == {(422, "idempotency_key_reused")}
    assert len(world.first.stored()) == 1
    rival = call("create_sandbox", body={}, tenant="other", headers={"Idempotency-Key": "k"})
    assert rival.status == 201


BODIES: list[tuple[Any, str]] = [
    ({"name": "mine"}, "name"),
    ({"ttl_seconds": 59}, "ttl_seconds"),
    ({"ttl_seconds": 366 * 86_400 + 1}, "ttl_seconds"),
    ({"ttl_seconds": None}, "ttl_seconds"),
    ({"ttl_seconds": "60"}, "ttl_seconds"),
    ({"contents": "registers"}, "contents"),
    ({"contents": ["disk"]}, "contents"),
    ([], "body"),
]


@pytest.mark.parametrize(("body", "path"), BODIES, ids=range(len(BODIES)))
def test_a_bad_body_is_400_and_takes_nothing(world: World, body: Any, path: str) -> None:
    sandbox_id = world.created()
    before = len(world.first.calls)
    assert complaint(take(sandbox_id, body)) == (400, "invalid_request", path)
    assert len(world.first.calls) == before


def test_what_the_pool_does_not_capture_is_422(world: World) -> None:
    sandbox_id = world.created()
    offering(world, {"contents": ["disk"], "interrupts": None, "idempotent": False})
    assert complaint(take(sandbox_id, {"contents": "memory"})) == (422, "unsupported", "contents")
    assert take(sandbox_id).json["contents"] == "disk"
    offering(world, None)
    got = take(sandbox_id)
    assert (got.status, got.code) == (422, "unsupported")
    assert len(world.first.stored()) == 1


def offering(world: World, ability: dict[str, Any] | None) -> None:
    """From now on the first pool has no such ability, or this one."""
    plain = world.pools.pool("pool-a")
    abilities = {**plain.profile.abilities, "snapshots": ability}
    world.pools._pools["pool-a"] = replace(
        plain, profile=replace(plain.profile, abilities=abilities)
    )


def test_only_what_runs_is_captured(world: World) -> None:
    sandbox_id = world.created()
    on("pause_sandbox", sandbox_id)
    got = take(sandbox_id)
    assert (got.status, got.code, got.json["retryable"]) == (409, "not_running", False)
    starting = call("create_sandbox", body={}, headers={"Prefer": "wait=0"}).json["id"]
    got = take(starting)
    assert (got.status, got.code, got.json["retryable"]) == (409, "not_running_yet", True)
    assert world.first.shots == {}


def test_a_snapshot_of_what_the_provider_lost_is_no_open_question(world: World) -> None:
    sandbox_id = world.created()
    (box,) = world.first.boxes.values()
    box.dead_at = world.clock.now()
    got = take(sandbox_id, key="k")
    assert (got.status, got.code, got.json["outcome"]) == (409, Gone.code, "none")
    assert [a["outcome"] for a in got.json["attempts"]] == ["refused"]
    world.router.advance(sandbox_id)
    world.clock.sleep(30)
    world.router.advance(sandbox_id)
    assert on("get_sandbox", sandbox_id).json["state"] == "lost"


def test_taking_one_is_a_use(world: World) -> None:
    sandbox_id = world.created(idle_timeout_seconds=60)
    world.clock.sleep(50)
    assert take(sandbox_id).status == 201
    world.clock.sleep(50)
    world.router.advance(sandbox_id)
    assert on("get_sandbox", sandbox_id).json["state"] == "running"


def test_a_sandbox_is_made_from_one(world: World) -> None:
    found = world.captured(world.created())
    got = call("create_sandbox", body={"snapshot_id": found, "size": "2x4"})
    assert (got.status, got.json["snapshot_id"], got.json["image"]) == (201, found, None)
    assert got.json["pool_id"] == "pool-a"
    route = call("route_sandbox", body={"snapshot_id": found}).json
    assert [one["pool_id"] for one in route["candidates"]] == ["pool-a"]
    assert [one["reasons"] for one in route["refused"]] == [["snapshot_elsewhere"]]
    assert call("create_sandbox", body={}).json["snapshot_id"] is None


REFUSED: list[tuple[dict[str, Any], tuple[int, str, str]]] = [
    ({"image": "python"}, (400, "invalid_request", "image")),
    ({"snapshot_id": NONE}, (400, "invalid_request", "snapshot_id")),
    ({"snapshot_id": "snap-1"}, (400, "invalid_request", "snapshot_id")),
    ({"snapshot_id": ""}, (400, "invalid_request", "snapshot_id")),
    ({"size": "4x8"}, (422, "unsupported", "pools.pool-a")),
    ({"vcpu": 2, "memory_gib": 4.5}, (422, "unsupported", "pools.pool-a")),
    ({"provider": {"only": ["pool-b"]}}, (422, "unsupported", "pools.pool-a")),
]


@pytest.mark.parametrize(("body", "told"), REFUSED, ids=range(len(REFUSED)))
@pytest.mark.parametrize("operation", ["create_sandbox", "route_sandbox"])
def test_what_cannot_be_made_from_one_is_refused_and_harms_it_not(
    world: World, operation: str, body: dict[str, Any], told: tuple[int, str, str]
) -> None:
    found = world.captured(world.created())
    before = len(world.first.calls)
    got = call(operation, body={"snapshot_id": found, **body})
    if operation == "route_sandbox" and told[0] == 422:
        reasons = {one["pool_id"]: one["reasons"] for one in got.json["refused"]}
        assert set(reasons) == {"pool-a", "pool-b"}
    else:
        assert complaint(got) == told
        assert "size" not in body or "size" in got.json["detail"]
    assert len(world.first.calls) == before
    assert of("get_snapshot", found).json["state"] == "ready"


@pytest.mark.parametrize("operation", ["create_sandbox", "route_sandbox"])
def test_one_that_is_not_ready_or_no_more_is_409(world: World, operation: str) -> None:
    sandbox_id = world.created()
    slow = take(sandbox_id, headers={"Prefer": "wait=0"}).json["id"]
    got = call(operation, body={"snapshot_id": slow})
    assert (got.status, got.code, got.json["retryable"]) == (409, "not_running_yet", True)
    assert int(got.headers["retry-after"]) >= 1
    conforms(catalog.http(operation), got)
    ended = world.captured(sandbox_id)
    of("destroy_snapshot", ended)
    expired = world.captured(sandbox_id, ttl_seconds=60)
    world.clock.sleep(61)
    for found, why in ((ended, "is deleted"), (expired, "has expired")):
        got = call(operation, body={"snapshot_id": found})
        assert (got.status, got.code, got.json["retryable"]) == (409, "not_running", False)
        assert got.json["detail"] == f"the snapshot {why}"
    assert len(world.first.boxes) == 1


def test_anothers_is_none_to_make_a_sandbox_from(world: World) -> None:
    found = world.captured(world.created())
    answers = []
    for snapshot_id in (found, NONE):
        body = {"snapshot_id": snapshot_id}
        got = call("create_sandbox", body=body, tenant="other", headers={"Idempotency-Key": "x"})
        assert got.json["field_errors"][0]["path"] == "snapshot_id"
        answers.append((got.status, got.text))
    assert answers[0] == answers[1]
    assert answers[0][0] == 400
    assert len(world.first.boxes) == 1


def test_a_list_is_paged_and_filtered(world: World) -> None:
    first, second = world.created(), world.created()
    ids = []
    for sandbox_id in (first, second, first):
        world.clock.sleep(1)
        ids.append(world.captured(sandbox_id))
    page = call("list_snapshots", query={"limit": "2"}).json
    assert [one["id"] for one in page["data"]] == ids[:0:-1]
    rest = call("list_snapshots", query={"limit": "2", "cursor": page["next_cursor"]}).json
    assert [one["id"] for one in rest["data"]] == ids[:1]
    assert rest["next_cursor"] is None

    def listed(**query: str | list[str]) -> list[str]:
        return [one["id"] for one in call("list_snapshots", query=query).json["data"]]

    assert listed(sandbox_id=first) == [ids[2], ids[0]]
    of("destroy_snapshot", ids[1])
    assert listed() == [ids[2], ids[0]]
    assert listed(state="deleted") == [ids[1]]
    assert listed(state=["ready,failed", "deleted"]) == ids[::-1]
    assert listed(created_after="2100-01-01T00:00:00Z") == []
    assert call("list_snapshots", tenant="other").json == {"data": [], "next_cursor": None}


def test_a_cursor_is_its_lists_and_its_tenants(world: World) -> None:
    sandbox_id = world.created()
    world.created()
    for _ in range(2):
        world.captured(sandbox_id)
    cursors = {
        name: call(name, query={"limit": "1"}).json["next_cursor"]
        for name in ("list_sandboxes", "list_snapshots")
    }
    for name, other in (("list_sandboxes", "list_snapshots"), ("list_snapshots", "list_sandboxes")):
        assert call(name, query={"cursor": cursors[name]}).status == 200
        wrong = call(name, query={"cursor": cursors[other]})
        stolen = call(name, query={"cursor": cursors[name]}, tenant="other")
        for got in (wrong, stolen):
            assert complaint(got) == (400, "invalid_request", "cursor")


QUERIES: list[dict[str, str]] = [
    {"state": "running"},
    {"state": ""},
    {"sandbox_id": "sbx-1"},
    {"sandbox_id": NONE},
    {"limit": "0"},
    {"cursor": "AAAA"},
    {"label": "a=b"},
]


@pytest.mark.parametrize("query", QUERIES, ids=range(len(QUERIES)))
def test_a_bad_query_is_400(world: World, query: dict[str, str]) -> None:
    got = call("list_snapshots", query=query)
    assert (got.status, got.code) == (400, "invalid_request")


def test_delete_is_202_until_it_is_gone_and_204_ever_after(world: World) -> None:
    found = world.captured(world.created())
    world.first.script("destroy_capture", "kept")
    first = of("destroy_snapshot", found)
    assert (first.status, first.json["state"]) == (202, "deleting")
    world.clock.sleep(5)
    world.router.advance(found)
    for _ in range(2):
        again = of("destroy_snapshot", found)
        assert (again.status, again.data) == (204, b"")
    gone = of("get_snapshot", found)
    assert (gone.status, gone.json["state"]) == (200, "deleted")
    assert world.first.stored() == []


def test_one_that_is_deleted_before_it_is_taken_never_was(world: World) -> None:
    sandbox_id = world.created()
    handed = take(sandbox_id, key="k", headers={"Prefer": "wait=0"}).json["id"]
    assert of("destroy_snapshot", handed).status == 204
    world.router.advance(handed)
    for _ in range(2):
        got = take(sandbox_id, key="k")
        assert (got.status, got.code) == (409, "destroyed")
        assert got.json["detail"] == "The snapshot was deleted meanwhile"
    assert world.first.shots == {}


@pytest.mark.parametrize("place", ["/v/v1/sandboxes/{id}/snapshots/", "/v/v1/sandboxes/%73{}"])
def test_its_location_is_its_place_however_the_sandbox_was_spelled(
    world: World, place: str
) -> None:
    sandbox_id = world.created()
    asked = event("take_snapshot", path={"id": sandbox_id})
    spelled = place.replace("{id}", sandbox_id).replace("{}", f"{sandbox_id[1:]}/snapshots")
    asked["requestContext"]["path"] = spelled
    got = invoke("take_snapshot", asked)
    assert got.headers["location"] == f"/v/v1/snapshots/{got.json['id']}"


def test_a_damaged_record_is_our_fault_and_hides_no_other(world: World) -> None:
    sandbox_id = world.created()
    damaged, whole = (world.captured(sandbox_id) for _ in range(2))
    key = (f"SNAP#{damaged}", "A")
    item = next(i for i in world.table.items() if (i["pk"], i["sk"]) == key)
    world.table.replace(key, {**item, "state": "unheard_of"})
    for got in (
        of("get_snapshot", damaged),
        of("destroy_snapshot", damaged),
        call("create_sandbox", body={"snapshot_id": damaged}),
    ):
        assert (got.status, got.code) == (500, "internal")
    assert [one["id"] for one in call("list_snapshots").json["data"]] == [whole]


def test_the_catalog_says_what_is_captured_and_routing_asks_for_it(world: World) -> None:
    ability = call("get_provider", path={"kind": "e2b"}).json["abilities"]["snapshots"]
    assert (ability["contents"], ability["interrupts"]) == (["memory", "disk"], "pause")
    body = {"provider": {"require": ["snapshots"]}}
    route = call("route_sandbox", body=body).json
    assert [one["pool_id"] for one in route["candidates"]] == ["pool-a", "pool-b"]
    offering(world, None)
    route = call("route_sandbox", body=body).json
    assert [one["pool_id"] for one in route["candidates"]] == ["pool-b"]
    assert [one["reasons"] for one in route["refused"]] == [["ability:snapshots"]]
    assert call("create_sandbox", body=body).json["pool_id"] == "pool-b"
