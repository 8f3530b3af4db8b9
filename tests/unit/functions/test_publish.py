"""The table's stream, told to the bus: a sandbox's life as other systems see it."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

import jsonschema
import pytest

from adapters.aws.values import encoded
from functions.edge import events
from functions.workers import publish
from infra import schemas
from sandbox_router.table import Item
from tests.unit.functions.world import REQUEST_ID, World, call, on

CANARY = "CANARY-7f3a-x7Qz"
NOTHING: dict[str, list[dict[str, str]]] = {"batchItemFailures": []}


def record(item: Item, number: int = 1, name: str = "INSERT") -> dict[str, Any]:
    keys = encoded({name: item[name] for name in ("pk", "sk")})
    change = {"Keys": keys, "NewImage": encoded(item), "SequenceNumber": str(number)}
    return {"eventID": "e", "eventName": name, "eventSource": "aws:dynamodb", "dynamodb": change}


def batch(items: Sequence[Item]) -> dict[str, Any]:
    return {"Records": [record(item, n + 100) for n, item in enumerate(items)]}


def audit(world: World, sandbox_id: str) -> list[Item]:
    return list(world.table.query(None, f"LOG#{sandbox_id}").items)


def story(world: World, sandbox_id: str) -> list[tuple[str, Any, Any]]:
    """(type, state or pool before, state or pool after) of what the bus was told."""
    found = []
    for event in world.bus.events:
        assert event.detail["sandbox_id"] == sandbox_id
        before = event.detail.get("previous_state", event.detail.get("previous_pool_id"))
        after = event.detail.get("state", event.detail.get("pool_id"))
        found.append((event.type.removeprefix("sandbox."), before, after))
    return found


def test_a_life_is_told_in_order_with_stable_ids(world: World) -> None:
    world.first.script("create", "capacity")
    body = {"env": {"TOKEN": CANARY}, "labels": {"a": CANARY}}
    box = call("create_sandbox", body=body, headers={"Idempotency-Key": CANARY}).json["id"]
    on("pause_sandbox", box, body={})
    on("destroy_sandbox", box)
    assert publish.handler(batch(audit(world, box)), None) == NOTHING
    assert story(world, box) == [
        ("state.changed", None, "starting"),
        ("failover", "pool-a", "pool-b"),
        ("state.changed", "starting", "running"),
        ("state.changed", "running", "pausing"),
        ("state.changed", "pausing", "paused"),
        ("state.changed", "paused", "destroying"),
        ("state.changed", "destroying", "destroyed"),
    ]
    told = list(world.bus.events)
    assert publish.handler(batch(audit(world, box)), None) == NOTHING
    assert world.bus.events[len(told) :] == told
    assert len({event.id for event in told}) == len(told)
    for event in told:
        schema = json.loads((schemas.FOLDER / f"{event.type}.json").read_text())
        jsonschema.validate(event.detail, schema, jsonschema.Draft202012Validator)
        known = events.OUT[event.type].__annotations__.keys() | {"caused_by"}
        assert set(event.detail) <= known
        assert (event.detail["event_id"], event.detail["tenant"]) == (event.id, "acme")
        assert event.detail["caused_by"] == REQUEST_ID
    assert "CANARY" not in repr(told)


def test_what_is_no_new_audit_entry_is_passed_over(world: World) -> None:
    box = world.created()
    items = [*world.table.query(None, f"SBX#{box}").items, *audit(world, box)[:1]]
    event = batch(items)
    event["Records"] += [
        record(audit(world, box)[0], 7, "MODIFY"),
        record(audit(world, box)[0], 8, "REMOVE"),
    ]
    assert publish.handler(event, None) == NOTHING
    assert len(world.bus.events) == 1


def test_half_an_entry_is_a_dead_letter_and_holds_up_nothing(
    world: World, logged: io.StringIO
) -> None:
    box = world.created()
    good = audit(world, box)
    bad = {name: good[0][name] for name in ("pk", "sk")} | {"event": CANARY}
    event = batch([good[0], bad, *good[1:]])
    event["Records"][1]["dynamodb"]["NewImage"]["x"] = {"??": CANARY}
    assert publish.handler(event, None) == NOTHING
    assert [event.detail["state"] for event in world.bus.events] == ["starting", "running"]
    assert world.bus.letters == [{"source": "outbox", "key": [bad["pk"], bad["sk"]]}]
    assert "CANARY" not in logged.getvalue()


@pytest.mark.parametrize("bad", [False, True])
def test_a_bus_that_is_down_gets_the_whole_batch_again(world: World, bad: bool) -> None:
    items = audit(world, world.created())
    if bad:
        items.append({"pk": "LOG#x", "sk": "1"})
    world.bus.down = 1
    again = {"batchItemFailures": [{"itemIdentifier": "100"}]}
    assert publish.handler(batch(items), None) == again
    assert world.bus.events == []
    assert publish.handler(batch(items), None) == NOTHING
    assert len(world.bus.events) == 2
