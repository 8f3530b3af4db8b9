"""The weak table does each harm it promises, on script and by chance, and no other."""

from __future__ import annotations

import random
from typing import Any

import pytest

from sandbox_router.table import (
    ConditionFailed,
    Contended,
    Delete,
    Lost,
    Put,
    TableError,
    Update,
    missing,
)
from tests.fakes.clock import FakeClock
from tests.fakes.table import MemoryTable
from tests.fakes.weak import Fault, Weak

KEY = ("pk", "sk")
INDEXED = {"due_shard": "s", "due_at": 1}


def weak(**faults: Any) -> tuple[Weak, MemoryTable, FakeClock]:
    inner, clock = MemoryTable(), FakeClock()
    return Weak(inner, random.Random(1), clock, **faults), inner, clock


@pytest.mark.parametrize(
    ("fault", "error", "written"),
    [
        *[("ok", None, True), ("lost", Lost, True), ("dropped", Lost, False)],
        *[("contended", Contended, False), ("throttled", Contended, False)],
    ],
)
def test_a_script_decides_the_next_write(
    fault: Fault, error: type[TableError] | None, written: bool
) -> None:
    table, inner, _ = weak()
    table.writes.extend(["ok", fault])
    table.write(Put(("pk", "first"), {}))
    if error:
        with pytest.raises(error):
            table.write(Put(KEY, {}))
    else:
        table.write(Put(KEY, {}))
    assert (inner.get(KEY) is not None) is written
    table.write(Put(KEY, {}))


def test_a_lost_answer_hides_a_failed_condition_too() -> None:
    table, _, _ = weak()
    table.write(Put(KEY, {}))
    table.writes.append("lost")
    with pytest.raises(Lost):
        table.write(Put(KEY, {}, missing()))
    with pytest.raises(ConditionFailed):
        table.write(Put(KEY, {}, missing()))


def test_a_script_decides_the_next_reads() -> None:
    table, _, _ = weak()
    table.reads.extend(["throttled", "ok", "contended"])
    with pytest.raises(Contended):
        table.get(KEY)
    assert table.get(KEY) is None
    with pytest.raises(Contended):
        table.query(None, "pk")


def test_without_faults_it_is_the_table_itself() -> None:
    table, _, _ = weak()
    for number in range(200):
        table.write(Put(("pk", str(number)), INDEXED))
    assert len(table.query("due", "s", limit=200).items) == 200


def test_chance_does_each_harm_and_is_the_same_for_the_same_seed() -> None:
    def history() -> list[str]:
        table, inner, _ = weak(contended=0.2, lost=0.2, throttled=0.1)
        seen = []
        for number in range(300):
            key = ("pk", str(number))
            try:
                table.write(Put(key, {}))
                seen.append("ok")
            except TableError as error:
                seen.append(f"{type(error).__name__} {inner.get(key) is not None}")
        return seen

    assert set(history()) == {"ok", "Contended False", "Lost True", "Lost False"}
    assert history() == history()


def test_an_index_shows_an_older_state_for_a_while_and_the_base_never() -> None:
    table, _, clock = weak(lag_ms=1000)
    table.write(Put(KEY, INDEXED))
    clock.sleep(1)
    assert len(table.query("due", "s").items) == 1
    seen = set()
    for number in range(2, 40):
        table.write(Update(KEY, set={"due_at": number}))
        got, base = table.get(KEY), table.query(None, "pk").items[0]
        assert got
        assert got["due_at"] == base["due_at"] == number
        stale = table.get(KEY, consistent=False)
        (late,) = table.query("due", "s").items
        assert stale == late
        late_at = late["due_at"]
        assert isinstance(late_at, int)
        seen.add(number - late_at)
        clock.sleep(0.3)
    assert max(seen) >= 1
    table.write(Delete(KEY))
    clock.sleep(1)
    assert table.query("due", "s").items == ()


def test_changes_of_one_item_reach_the_index_in_order() -> None:
    table, _, clock = weak(lag_ms=1000)
    for number in range(50):
        table.write(Update(KEY, set={"due_shard": "s", "due_at": number}))
    last = -1
    for _ in range(100):
        for item in table.query("due", "s").items:
            at = item["due_at"]
            assert isinstance(at, int)
            assert at >= last
            last = at
        clock.sleep(0.01)
    assert last == 49


def test_purged_items_leave_the_index_late_too() -> None:
    table, inner, clock = weak(lag_ms=1000)
    table.write(Put(KEY, {**INDEXED, "ttl": 5}), Put(("pk", "kept"), {**INDEXED, "ttl": 6}))
    clock.sleep(1)
    table.query("due", "s")
    assert [item["sk"] for item in table.purge(5)] == ["sk"]
    assert inner.get(KEY) is None
    clock.sleep(1)
    assert [item["sk"] for item in table.query("due", "s").items] == ["kept"]


def test_pages_may_be_short_and_still_go_on() -> None:
    table, _, _ = weak(short=0.5)
    for number in range(40):
        table.write(Put(("pk", f"{number:02}"), {}))
    sizes, found, cursor = set(), [], None
    while True:
        page = table.query(None, "pk", limit=8, cursor=cursor)
        sizes.add(len(page.items))
        found += [item["sk"] for item in page.items]
        if (cursor := page.cursor) is None:
            break
    assert found == [f"{number:02}" for number in range(40)]
    assert len(sizes) > 1
