"""What happens on the embedded backend is told: in order, at least once, without secrets."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from adapters.embedded.queue import SqliteQueue
from adapters.embedded.table import SqliteTable
from adapters.embedded.vault import FileVault
from adapters.journal import Journal
from functions.edge import wiring
from functions.edge.settings import Settings
from infra import schemas
from infra.local.feed import Feed
from sandbox_router.lifecycle.outbox import Outbox
from sandbox_router.model.secret import Secret
from sandbox_router.router import Router
from sandbox_router.store import Store
from sandbox_router.table import Put
from tests.architecture.tree import ROOT
from tests.fakes.ids import FakeIds
from tests.fakes.objects import MemoryObjects
from tests.unit.functions.world import World, call, on

CANARY = "CANARY-7f3a-x7Qz"


class Embedded(World):
    """The world, on the backend of one machine."""

    def __init__(self, state: Path) -> None:
        super().__init__()
        self.settings = Settings(state=state)
        self.store = SqliteTable(self.settings.table_file)
        self.messages = SqliteQueue(self.settings.queue_file, self.clock)
        self.feed = Feed(self.settings.table_file)
        self.events = self.settings.events_file
        self.router = Router(
            table=self.store,
            queue=self.messages,
            pools=self.pools,
            vault=FileVault(self.settings.vault_file),
            objects=MemoryObjects(),
            clock=self.clock,
            ids=FakeIds(),
            deployment="test",
            pepper=Secret("pepper" * 6),
        )

    def outbox(self) -> Outbox:
        """As after a start."""
        journal = Journal(self.events)
        return Outbox(self.feed, Store(self.store, self.clock, FakeIds()), journal, journal)

    def told(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.events.read_text().splitlines() if line]

    def close(self) -> None:
        for part in (self.feed, self.messages, self.store):
            part.close()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Embedded]:
    made = Embedded(tmp_path)
    wiring.use(lambda _: made.router, made.settings, made.outward)
    yield made
    wiring.use(wiring.build)
    made.close()


def lived(world: Embedded) -> str:
    """A sandbox from create to destroy, by way of a failover."""
    world.clock.sleep(30)  # the pool that refused the last one is asked first again
    world.first.script("create", "capacity")
    body = {"env": {"TOKEN": CANARY}, "labels": {"a": CANARY}}
    key = {"Idempotency-Key": f"{CANARY}-{len(world.second.boxes)}"}
    box = str(call("create_sandbox", body=body, headers=key).json["id"])
    assert on("destroy_sandbox", box).status == 204
    return box


def states(events: list[dict[str, Any]], box: str) -> list[str]:
    mine = [event["detail"] for event in events if event["detail"]["sandbox_id"] == box]
    return [detail.get("state", "failover") for detail in mine]


LIFE = ["starting", "failover", "running", "destroying", "destroyed"]


def test_a_life_through_the_handlers_is_told(world: Embedded) -> None:
    boxes = [lived(world), lived(world)]
    assert world.outbox().drain() == 10
    assert world.outbox().drain() == 0
    told = world.told()
    for box in boxes:
        assert states(told, box) == LIFE
    for event in told:
        schema = json.loads((schemas.FOLDER / f"{event['detail-type']}.json").read_text())
        jsonschema.validate(event["detail"], schema, jsonschema.Draft202012Validator)
        assert (event["source"], event["id"]) == ("sandbox-router", event["detail"]["event_id"])
    assert len({event["id"] for event in told}) == 10
    assert "CANARY" not in world.events.read_text()
    assert world.events.stat().st_mode & 0o777 == 0o600


def test_a_crash_before_the_place_is_kept_tells_again_and_loses_nothing(world: Embedded) -> None:
    box = lived(world)
    outbox = world.outbox()

    class Crash(BaseException):
        pass

    def crash(key: Any, item: Any) -> None:
        raise Crash

    outbox._store.put = crash  # type: ignore[method-assign]
    with pytest.raises(Crash):
        outbox.drain()
    assert states(world.told(), box) == LIFE
    assert world.outbox().drain() == 5
    assert states(world.told(), box) == LIFE * 2
    ids = [event["id"] for event in world.told()]
    assert ids[:5] == ids[5:]
    assert world.outbox().drain() == 0


def test_what_was_told_is_not_kept(world: Embedded) -> None:
    outbox = world.outbox()
    for _ in range(3):
        lived(world)
        outbox.drain()
    kept = world.feed._file.read("SELECT count(*) FROM feed")[0][0]
    everything = world.feed._file.read("SELECT max(n) FROM feed")[0][0]
    assert kept < everything / 2


def test_a_place_never_comes_again(world: Embedded) -> None:
    for n in range(250):
        world.store.write(Put((f"LOG#{n}", "1"), {"n": n}))
        world.store.write(Put(("POOL#x", "A"), {"n": n}))
    items, place = world.feed(None)
    assert [item["n"] for item in items] == list(range(100))
    world.feed(place)
    world.feed._file.write(lambda db: db.execute("DELETE FROM feed"))
    world.store.write(Put(("LOG#more", "1"), {"n": -1}))
    items, later = world.feed(place)
    assert [item["n"] for item in items] == [-1]
    assert int(later or 0) > 250


WRITER = """
import sys, json
from pathlib import Path
from adapters.embedded.table import SqliteTable
from adapters.journal import Journal
from adapters.system import SystemClock, SystemIds
from infra.local.feed import Feed
from sandbox_router.lifecycle.outbox import Outbox
from sandbox_router.store import Store
from sandbox_router.table import Put

state = Path(sys.argv[1])
table = SqliteTable(state / "router.db")
journal = Journal(state / "events.jsonl")
store = Store(table, SystemClock(), SystemIds())
outbox = Outbox(Feed(state / "router.db"), store, journal, journal)
start = int(sys.argv[2])
for n in range(start, start + 100_000):
    entry = {"at": n, "event": "created", "state": "starting"}
    item = {**entry, "sandbox_id": "sbx-x", "tenant": "acme"}
    table.write(Put(("LOG#sbx-x", f"{n:012d}"), item))
    print(n, flush=True)
    outbox.drain()
"""


@pytest.mark.slow
def test_killed_again_and_again_it_tells_everything_in_order(tmp_path: Path) -> None:
    stored = 0
    for _ in range(4):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path), str(stored)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": "layers/core/python:."},
        )
        assert process.stdout is not None
        assert process.stdout.readline()
        time.sleep(0.3)
        process.send_signal(signal.SIGKILL)
        lines = process.communicate()[0].split(b"\n")
        stored = max([stored, *(int(line) for line in lines[:-1] if line)]) + 1
    made = Embedded(tmp_path)
    made.outbox().drain()
    told = [event["detail"]["occurred_at"] for event in made.told()]
    firsts = list(dict.fromkeys(told))
    assert firsts == sorted(firsts)
    assert len(firsts) >= stored
    made.close()
