"""The Clock and Ids ports, real and fake, and the purge of what is past its TTL."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from adapters.embedded.table import SqliteTable
from adapters.system import SystemClock, SystemIds
from sandbox_router.ports import Clock, Ids
from sandbox_router.table import Put, Value
from tests.fakes.clock import START, FakeClock
from tests.fakes.ids import FakeIds
from tests.fakes.table import MemoryTable


@pytest.fixture(params=[SystemIds, FakeIds])
def ids(request: pytest.FixtureRequest) -> Ids:
    made: Ids = request.param()
    return made


def test_a_sandbox_id_is_a_dns_label_of_130_bits(ids: Ids) -> None:
    made = {ids.sandbox() for _ in range(1000)}
    assert len(made) == 1000
    assert all(re.fullmatch(r"sbx-[a-z2-7]{26}", name) for name in made)
    for at in range(4, 30):
        assert len({name[at] for name in made}) == 32


def test_a_nonce_is_never_the_same(ids: Ids) -> None:
    assert len({ids.nonce() for _ in range(1000)}) == 1000


def test_jitter_is_in_zero_to_one(ids: Ids) -> None:
    some = [ids.jitter() for _ in range(1000)]
    assert all(0 <= each < 1 for each in some)
    assert max(some) - min(some) > 0.5


def test_fake_names_follow_from_the_seed() -> None:
    assert FakeIds(1).sandbox() == FakeIds(1).sandbox() != FakeIds(2).sandbox()
    assert FakeIds(1).nonce() != FakeIds(2).nonce()


def test_the_system_clock_is_in_milliseconds() -> None:
    clock: Clock = SystemClock()
    before = clock.now()
    clock.sleep(0.02)
    clock.sleep(-1)
    assert 20 <= clock.now() - before < 2000
    assert abs(clock.now() - time.time() * 1000) < 1000


def test_the_fake_clock_moves_only_when_told_and_never_back() -> None:
    clock = FakeClock()
    assert clock.now() == START
    clock.sleep(1.5)
    clock.at(START)
    assert clock.now() == START + 1500
    clock.at(START + 2000)
    assert clock.now() == START + 2000


@pytest.mark.parametrize("kind", [MemoryTable, SqliteTable])
def test_purge_takes_what_is_past_its_ttl_and_no_more_than_asked(
    tmp_path: Path, kind: type[MemoryTable] | type[SqliteTable]
) -> None:
    table = SqliteTable(tmp_path / "table.db") if kind is SqliteTable else MemoryTable()
    ttls: dict[str, Value] = {"a": 10, "b": 11, "c": 12, "text": "1", "flag": True, "none": None}
    table.write(Put(("pk", "forever"), {}), *(Put(("pk", k), {"ttl": v}) for k, v in ttls.items()))
    assert table.purge(9) == ()
    assert table.purge(10) == ({"pk": "pk", "sk": "a", "ttl": 10},)
    assert len(table.purge(100, limit=1)) == 1
    assert len(table.purge(100)) == 1
    left = {item["sk"] for item in table.query(None, "pk").items}
    assert left == {"forever", "text", "flag", "none"}
    if isinstance(table, SqliteTable):
        table.close()
