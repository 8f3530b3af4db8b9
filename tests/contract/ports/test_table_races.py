"""The Table port under many threads: one winner, no update lost, no transaction half done."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

from sandbox_router.table import (
    ConditionFailed,
    Contended,
    Lost,
    Put,
    Test,
    Update,
    missing,
    when,
)
from tests.contract.ports.conftest import Patient
from tests.fakes.weak import Weak

THREADS = 32
KEY = ("pk", "sk")
CHANCE = random.Random(3)


def together(work: Callable[[int], None], threads: int = THREADS) -> None:
    """Run the work in threads that begin at once; the first error is the test's."""
    barrier = threading.Barrier(threads)
    errors: list[BaseException] = []

    def main(number: int) -> None:
        barrier.wait()
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    running = [threading.Thread(target=main, args=(n,)) for n in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    if errors:
        raise errors[0]


def test_one_of_many_puts_if_absent_wins(table: Patient) -> None:
    for round in range(5):
        key, winners, seen = ("pk", str(round)), list[int](), list[object]()

        def put(
            number: int,
            key: tuple[str, str] = key,
            winners: list[int] = winners,
            seen: list[object] = seen,
        ) -> None:
            try:
                table.write(Put(key, {"by": number}, missing()))
                winners.append(number)
            except ConditionFailed as failed:
                seen.append((failed.old[0] or {}).get("by"))

        together(put)
        assert len(winners) == 1
        assert set(seen) == set(winners)


def test_no_increment_by_compare_and_set_is_lost(table: Patient) -> None:
    table.write(Put(KEY, {"n": 0}))

    def increment(_: int) -> None:
        for _ in range(3):
            while True:
                item = table.get(KEY)
                assert item
                have = item["n"]
                assert isinstance(have, int)
                try:
                    table.write(Update(KEY, set={"n": have + 1}, when=when(Test("n", "=", have))))
                    break
                except ConditionFailed:
                    continue

    together(increment)
    assert table.get(KEY) == {"pk": "pk", "sk": "sk", "n": THREADS * 3}


def test_no_addition_is_lost(table: Patient) -> None:
    def add(_: int) -> None:
        for _ in range(10):
            table.write(Update(KEY, add={"n": 1}))

    together(add)
    assert table.get(KEY) == {"pk": "pk", "sk": "sk", "n": THREADS * 10}


def test_transactions_over_the_same_items_keep_their_sum(table: Patient) -> None:
    keys = [("pk", str(n)) for n in range(4)]
    table.write(*(Put(key, {"n": 100}) for key in keys))

    def move(number: int) -> None:
        for step in range(5):
            source, target = keys[(number + step) % 4], keys[(number + step * 3 + 1) % 4]
            if source == target:
                continue
            try:
                table.write(
                    Update(source, add={"n": -7}, when=when(Test("n", ">=", 7))),
                    Update(target, add={"n": 7}),
                )
            except ConditionFailed:
                continue

    together(move)
    left = [item["n"] for item in table.pages(None, "pk")]
    assert sum(n for n in left if isinstance(n, int)) == 400
    assert all(isinstance(n, int) and n >= 0 for n in left)


def test_a_writer_that_hears_nothing_knows_by_its_own_mark(table: Patient) -> None:
    """The claim's rule: after Lost the item shows the writer's mark, or it was not written."""
    weak = table.inner if isinstance(table.inner, Weak) else Weak(table.inner, CHANCE, table.clock)
    table.write(Put(KEY, {"n": 0}))
    weak.lost = 0.4

    def write_once(number: int, step: int) -> bool:
        item = table.get(KEY)
        assert item
        have, mark = item["n"], (f"by{number}", step)
        assert isinstance(have, int)
        write = Update(KEY, set={"n": have + 1, mark[0]: step}, when=when(Test("n", "=", have)))
        while True:
            try:
                weak.write(write)
            except (Lost, Contended):
                continue
            except ConditionFailed as failed:
                return (failed.old[0] or {}).get(mark[0]) == step
            return True

    def increment(number: int) -> None:
        for step in range(3):
            while not write_once(number, step):
                pass

    together(increment)
    end = table.get(KEY)
    assert end
    assert end["n"] == THREADS * 3
