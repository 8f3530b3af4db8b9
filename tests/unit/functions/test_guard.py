"""The guard: what its stream tells it, and whom it wakes for that."""

from __future__ import annotations

import io
from typing import Any

import pytest

from functions.catalog import WORKERS, FromStream
from functions.edge.expiry import PREFIX, SERVICE, looks_at_expired
from functions.workers import guard
from sandbox_router.store.items import GUARD_SECONDS
from sandbox_router.table import Delete, Update
from tests.unit.functions.world import World, on

SBX = "sbx-" + "a" * 26
KINDS = ("sbx-", "snap-", "sbx-", "snap-")


def record(number: int = 1, pk: str = PREFIX + SBX, **more: Any) -> dict[str, Any]:
    keys = {"pk": {"S": pk}, "sk": {"S": "A"}}
    change = {"SequenceNumber": str(number), "Keys": keys}
    return {"eventName": "REMOVE", "userIdentity": dict(SERVICE), "dynamodb": change, **more}


@pytest.mark.parametrize(
    "other",
    [
        record(eventName="INSERT"),
        record(eventName="MODIFY"),
        record(userIdentity=None),  # removed by us, together with the sandbox's end
        record(userIdentity={"type": "Service", "principalId": "other.amazonaws.com"}),
        record(pk=f"SBX#{SBX}"),
        record(pk=PREFIX),
        record(pk=f"{PREFIX}{SBX}\n"),
        {"eventName": "REMOVE"},
        {},
    ],
)
def test_only_an_expired_guard_wakes_anybody(other: dict[str, Any]) -> None:
    seen: list[str] = []
    handler = looks_at_expired(seen.append)
    assert handler({"Records": [other]}, None) == {"batchItemFailures": []}
    assert seen == []


def test_every_record_is_looked_at_and_those_that_failed_are_said() -> None:
    seen: list[str] = []

    def look(sandbox_id: str) -> None:
        seen.append(sandbox_id)
        if sandbox_id.endswith("b"):
            raise OSError("CANARY")

    boxes = [kind + letter * 26 for kind, letter in zip(KINDS, "abcb", strict=True)]
    records = [record(n, PREFIX + box) for n, box in enumerate(boxes)]
    answer = looks_at_expired(look)({"Records": records}, None)
    assert seen == boxes
    assert answer == {"batchItemFailures": [{"itemIdentifier": "1"}, {"itemIdentifier": "3"}]}


def test_the_worker_moves_a_sandbox_past_its_deadline(world: World) -> None:
    box = world.created(ttl_seconds=60)
    world.clock.at(world.clock.now() + 61_000)
    assert guard.handler({"Records": [record(pk=PREFIX + box)]}, None) == {"batchItemFailures": []}
    assert on("get_sandbox", box).json["state"] == "destroyed"


def guards(world: World) -> dict[str, int]:
    """Sandboxes with a guard, and in how many seconds it expires."""
    now = world.clock.now() // 1000
    found = [item for item in world.table.items() if str(item["pk"]).startswith(PREFIX)]
    return {str(item["sandbox_id"]): int(str(item["ttl"])) - now for item in found}


def expired(world: World, box: str) -> None:
    world.table.write(Delete((PREFIX + box, "A")))
    assert guard.handler({"Records": [record(pk=PREFIX + box)]}, None) == {"batchItemFailures": []}


def test_until_a_sandbox_is_over_another_guard_follows_the_expired_one(world: World) -> None:
    box = world.created(ttl_seconds=60)
    world.first.script("destroy", "cut")
    world.clock.at(world.clock.now() + 660_000)
    expired(world, box)
    assert on("get_sandbox", box).json["state"] == "destroying"
    assert guards(world) == {box: GUARD_SECONDS}
    world.clock.at(world.clock.now() + 600_000)
    expired(world, box)
    assert on("get_sandbox", box).json["state"] == "destroyed"
    assert guards(world) == {}
    expired(world, box)
    assert guards(world) == {}


def test_a_record_nobody_can_read_stays_guarded_and_is_told(
    world: World, logged: io.StringIO
) -> None:
    box = world.created(ttl_seconds=60)
    world.table.write(Update((f"SBX#{box}", "A"), set={"state": "unheard_of"}))
    expired(world, box)
    assert guards(world) == {box: GUARD_SECONDS}
    assert "stuck" in logged.getvalue()


def test_the_row_asks_for_exactly_these() -> None:
    row = next(row for row in WORKERS if row.name == "guard")
    assert isinstance(row, FromStream)
    assert (row.prefix, row.change) == (PREFIX, "expired")
