"""The embedded backend survives kill -9: the acknowledged is there, nothing is half done."""

from __future__ import annotations

import multiprocessing
import random
import sqlite3
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from adapters.embedded.queue import SqliteQueue
from adapters.embedded.table import SqliteTable
from adapters.system import SystemClock
from sandbox_router.table import Contended, Item, Put
from tests.contract.ports import crashing

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload([crashing.__name__])
KILLS = 20


def kill_at_random(
    target: Callable[[Path, int], None], folder: Path, trace: str, rounds: int
) -> None:
    """Let the target run in rounds on the same file and kill each somewhere in its work."""
    chance = random.Random(5)
    after = [FORKS.Process(target=target, args=(folder, n)) for n in range(rounds)]
    for number, process in enumerate(after):
        process.start()
        end = time.monotonic() + 30
        while not _has_round(folder / trace, number):
            assert time.monotonic() < end, "the child did nothing"
            time.sleep(0.002)
        time.sleep(chance.random() * 0.08)
        process.kill()
        process.join()
        assert process.exitcode == -9


def _has_round(trace: Path, number: int) -> bool:
    return trace.exists() and f"\n{number}-" in "\n" + trace.read_text().replace("sent ", "")


def everything(table: SqliteTable, index: str | None, hash: str) -> list[Item]:
    items: list[Item] = []
    cursor = None
    while True:
        page = table.query(index, hash, cursor=cursor, limit=1000)
        items.extend(page.items)
        if (cursor := page.cursor) is None:
            return items


@pytest.mark.slow
def test_no_acknowledged_write_is_lost_and_no_transaction_is_torn(tmp_path: Path) -> None:
    kill_at_random(crashing.write_forever, tmp_path, "acks", KILLS)
    acknowledged: dict[str, int] = {}
    for line in (tmp_path / "acks").read_text().splitlines():
        name, step = line.split()
        acknowledged[name] = int(step)
    assert len(acknowledged) > KILLS
    table = SqliteTable(tmp_path / "table.db")
    for name, last in acknowledged.items():
        items = everything(table, None, name)
        steps = {
            side: [str(i["sk"])[-6:] for i in items if str(i["sk"]).startswith(side)]
            for side in ("left", "right")
        }
        done = len(steps["left"])
        assert last <= done <= last + 1
        assert steps["left"] == steps["right"] == [f"{n:06}" for n in range(1, done + 1)]
        assert [i["n"] for i in items if i["sk"] == "count"] == [done]
        assert [i["due_at"] for i in everything(table, "due", name)] == list(range(1, done + 1))
    table.close()


@pytest.mark.slow
def test_no_message_is_lost_and_none_done_comes_back(tmp_path: Path) -> None:
    rounds = 6
    kill_at_random(crashing.send_forever, tmp_path, "log", rounds)
    words = [line.split() for line in (tmp_path / "log").read_text().splitlines()]
    sent = {name for word, name in words if word == "sent"}
    took = {name for word, name in words if word == "took"}
    queue = SqliteQueue(tmp_path / "queue.db", clock := SystemClock())
    queue.reclaim()
    left = {m.record_id for m in queue.receive("create", 10**6, 120, clock.now())}
    queue.close()
    assert sent - took <= left
    # At a kill each thread may have had one in hand, and one sent or taken but not yet noted.
    assert len(left & took) <= rounds * crashing.THREADS
    assert len(left - sent) <= rounds * crashing.THREADS


def test_processes_that_write_at_once_lose_no_increment(tmp_path: Path) -> None:
    path = tmp_path / "table.db"
    racers = [FORKS.Process(target=crashing.increment, args=(path, 10)) for _ in range(3)]
    for racer in racers:  # all of them open, and one of them makes, the same new file
        racer.start()
    for racer in racers:
        racer.join(30)
    assert [racer.exitcode for racer in racers] == [0, 0, 0]
    table = SqliteTable(path)
    assert table.get(("pk", "sk")) == {"pk": "pk", "sk": "sk", "n": 3 * crashing.THREADS * 10}
    table.close()


def _rows(statement: str, db: sqlite3.Connection) -> list[object]:
    return db.execute(statement).fetchall()


def test_every_connection_syncs_each_commit(tmp_path: Path) -> None:
    table = SqliteTable(tmp_path / "table.db")
    file = table._file
    for pragma, expected in (("PRAGMA synchronous", 2), ("PRAGMA journal_mode", "wal")):
        assert file.read(pragma) == [(expected,)]
        assert file.write(partial(_rows, pragma)) == [(expected,)]
    table.close()


def test_the_file_is_its_owners_alone(tmp_path: Path) -> None:
    table = SqliteTable(tmp_path / "table.db")
    table.write(Put(("pk", "sk"), {}))
    assert {file.stat().st_mode & 0o777 for file in tmp_path.iterdir()} == {0o600}
    table.close()


def test_a_locked_file_is_contended_after_a_while_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adapters.embedded.file.PATIENCE_SECONDS", 0.2)
    table, other = SqliteTable(tmp_path / "table.db"), SqliteTable(tmp_path / "table.db")
    begun = time.monotonic()
    with other._file._open() as lock:
        lock.execute("BEGIN IMMEDIATE")
        with pytest.raises(Contended):
            table.write(Put(("pk", "sk"), {}))
        assert table.get(("pk", "sk")) is None
        lock.execute("ROLLBACK")
    lock.close()
    assert 0.2 <= time.monotonic() - begun < 2
    table.write(Put(("pk", "sk"), {}))
    for each in (table, other):
        each.close()


def test_a_closed_file_says_so_at_once(tmp_path: Path) -> None:
    table = SqliteTable(tmp_path / "table.db")
    table.close()
    with pytest.raises(Contended):
        table.write(Put(("pk", "sk"), {}))


def test_the_embedded_backend_has_at_most_500_lines() -> None:
    folder = Path(__file__).parents[3] / "adapters" / "embedded"
    lines = {path.name: path.read_text().count("\n") for path in folder.glob("*.py")}
    assert len(lines) > 4
    assert sum(lines.values()) <= 500, lines
