"""The outbox: which entries are told, as what, and that none is lost."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from sandbox_router.lifecycle.outbox import Outbox, event_of
from sandbox_router.model.event import Event
from sandbox_router.model.failure import StoreBusy
from sandbox_router.store import ORPHAN, OUTBOX, Entry, Logged, Store
from tests.fakes.bus import MemoryBus
from tests.fakes.clock import FakeClock
from tests.fakes.ids import FakeIds
from tests.fakes.table import MemoryTable

BOX = "sbx-" + "a" * 26


def told(entry: Entry, key: str = "LOG#x 1") -> Event | None:
    return event_of(Logged(key, BOX, "acme", entry))


def test_a_change_of_state_is_told_with_its_cause() -> None:
    event = told(Entry(1_000, "state", "running", "starting", None, request_id="req-1"))
    assert event is not None
    assert event.id.startswith("evt-")
    assert (event.type, event.at) == ("sandbox.state.changed", 1_000)
    assert event.detail == {
        "event_id": event.id,
        "sandbox_id": BOX,
        "tenant": "acme",
        "occurred_at": "1970-01-01T00:00:01.000Z",
        "caused_by": "req-1",
        "state": "running",
        "previous_state": "starting",
        "reason": None,
    }


def test_a_failover_names_both_pools() -> None:
    intent = Entry(
        1, "attempt.intended", "starting", None, "provider_capacity", 2, "b", instead_of="a"
    )
    event = told(intent)
    assert event is not None
    assert event.type == "sandbox.failover"
    named = {name: event.detail[name] for name in ("attempt", "pool_id", "previous_pool_id")}
    assert named == {"attempt": 2, "pool_id": "b", "previous_pool_id": "a"}
    assert "caused_by" not in event.detail


@pytest.mark.parametrize(
    "entry",
    [
        Entry(1, "attempt.intended", "starting", attempt=1, pool_id="a"),
        Entry(1, "attempt.intended", "starting", attempt=2, pool_id="a", instead_of="a"),
        Entry(1, "attempt.refused", "starting", attempt=1, pool_id="a"),
        Entry(1, "wish.client", "running"),
        Entry(1, "labels", "running"),
    ],
)
def test_the_rest_is_nobody_elses_business(entry: Entry) -> None:
    assert told(entry) is None


def test_an_id_is_the_entrys_own_and_stays() -> None:
    entry = Entry(1, "created", "starting")
    ids = [told(entry, f"LOG#x {n}") for n in (1, 2)]
    assert ids == [told(entry, f"LOG#x {n}") for n in (1, 2)]
    assert ids[0] != ids[1]


class Changes:
    """A table that remembers what was stored, page by page."""

    def __init__(self, page: int = 2) -> None:
        self.table, self._page = MemoryTable(), page
        self.items: list[Mapping[str, Any]] = []
        write = self.table.write

        def noted(*writes: Any) -> None:
            write(*writes)
            for one in writes:
                if (item := self.table.get(one.key)) is not None:
                    self.items.append(item)

        self.table.write = noted  # type: ignore[method-assign]

    def log(self, number: int, **more: Any) -> None:
        item = {"sandbox_id": BOX, "tenant": "acme", "at": number, "event": "created"}
        self.items.append({"pk": f"LOG#{BOX}", "sk": f"{number:04d}", **item, **more})

    def __call__(self, place: str | None) -> tuple[Sequence[Mapping[str, Any]], str | None]:
        at = int(place or 0)
        found = self.items[at : at + self._page]
        return found, str(at + len(found))


@pytest.fixture
def changes() -> Changes:
    return Changes()


@pytest.fixture
def bus() -> MemoryBus:
    return MemoryBus()


def outbox(changes: Changes, bus: MemoryBus) -> Outbox:
    """As after a start: it knows only what is stored."""
    return Outbox(changes, Store(changes.table, FakeClock(), FakeIds()), bus, bus)


def numbers(bus: MemoryBus) -> list[int]:
    return [event.at for event in bus.events]


def test_everything_is_told_in_order_and_once(changes: Changes, bus: MemoryBus) -> None:
    for n in range(5):
        changes.log(n, state="starting")
        changes.items.append({"pk": "SBX#x", "sk": "A"})
    box = outbox(changes, bus)
    assert box.drain() == 5
    assert box.drain() == 0
    assert outbox(changes, bus).drain() == 0
    assert numbers(bus) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("after", range(1, 5))
def test_a_crash_between_telling_and_noting_tells_again(
    changes: Changes, bus: MemoryBus, after: int
) -> None:
    class Crash(BaseException):
        pass

    for n in range(6):
        changes.log(n, state="starting")
    store = Store(changes.table, FakeClock(), FakeIds())
    puts = 0

    def put(key: Any, item: Any, keep: Any = store.put) -> None:
        nonlocal puts
        puts += 1
        if puts == after:
            raise Crash
        keep(key, item)

    store.put = put  # type: ignore[method-assign]

    def live() -> None:
        for _ in range(after):
            Outbox(changes, store, bus, bus).drain()
            changes.log(len(changes.items), state="starting")

    with pytest.raises(Crash):
        live()
    before = len(bus.events)
    outbox(changes, bus).drain()
    ids = {event.id: event for event in bus.events}
    logs = [item for item in changes.items if str(item["pk"]).startswith("LOG#")]
    assert len(ids) == len(logs)
    assert before < len(bus.events)
    firsts = list(dict.fromkeys(numbers(bus)))
    assert firsts == sorted(firsts)


def test_a_bus_that_is_down_loses_nothing(changes: Changes, bus: MemoryBus) -> None:
    for n in range(3):
        changes.log(n, state="starting")
    bus.down = 1
    box = outbox(changes, bus)
    with pytest.raises(StoreBusy):
        box.drain()
    assert box.drain() == 3
    assert numbers(bus) == [0, 1, 2]


def test_half_an_entry_holds_up_no_other(changes: Changes, bus: MemoryBus) -> None:
    changes.log(1, state="starting")
    changes.items.append({"pk": f"LOG#{BOX}", "sk": "2", "event": "CANARY"})
    changes.log(3, state="starting")
    assert outbox(changes, bus).drain() == 2
    assert bus.letters == [{"source": "outbox", "key": [f"LOG#{BOX}", "2"]}]


def test_silence_writes_nothing(changes: Changes, bus: MemoryBus) -> None:
    changes.items.append({"pk": "SBX#x", "sk": "A"})
    box = outbox(changes, bus)
    for _ in range(3):
        assert box.drain() == 0
    assert changes.table.get(OUTBOX) is None
    assert json.dumps(bus.letters) == "[]"


def test_an_orphan_that_was_ended_is_told() -> None:
    event = told(Entry(1_000, ORPHAN, "destroyed", reason="i-1", pool_id="alpha"))
    assert event is not None
    assert event.type == "sandbox.orphan.found"
    assert (event.detail["pool_id"], event.detail["instance_id"]) == ("alpha", "i-1")
    assert (event.detail["sandbox_id"], event.detail["tenant"]) == (BOX, "acme")
