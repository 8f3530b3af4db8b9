"""The Table port: partitions, sparse indexes, order, ranges and pages."""

from __future__ import annotations

import random
import threading

import pytest

from sandbox_router.table import EVERYTHING, Delete, Item, Put, Range, Update, Value
from tests.contract.ports.conftest import Patient


def names(items: list[Item]) -> list[Value]:
    return [item["sk"] for item in items]


def due(table: Patient, range: Range = EVERYTHING) -> list[Value]:
    return names(table.pages("due", "shard", range))


def enter(key: str, at: Value = 5, **more: Value) -> Put:
    return Put(("pk", key), {"due_shard": "shard", "due_at": at, **more})


def test_a_partition_is_read_in_order_of_its_sort_key(table: Patient) -> None:
    keys = ["b", "a", "ab", "A", "é", "z", "\0", "😀", "\uffff", "0"]
    for key in random.Random(1).sample(keys, len(keys)):
        table.write(Put(("pk", key), {}), Put(("other", key), {}))
    assert names(table.pages(None, "pk")) == sorted(keys)
    assert names(table.pages(None, "pk", descending=True)) == sorted(keys, reverse=True)
    assert table.pages(None, "nobody") == []


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        *[(None, None, "abcde"), ("b", None, "bcde"), (None, "b", "ab"), ("b", "d", "bcd")],
        *[("c", "c", "c"), ("bb", "cc", "c"), ("d", "b", ""), ("f", None, ""), (None, "", "")],
    ],
)
@pytest.mark.parametrize("descending", [False, True])
def test_bounds_are_inclusive(
    table: Patient, low: str | None, high: str | None, expected: str, descending: bool
) -> None:
    table.write(*(Put(("pk", letter), {}) for letter in "abcde"))
    found = names(table.pages(None, "pk", Range(low, high), descending=descending))
    assert found == sorted(expected, reverse=descending)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(None, 9, "an"), (9, 10, "bn"), (-5, 5, "an"), (11, None, "c"), (-(2**60), -6, "")],
)
def test_an_index_of_numbers_is_in_numeric_order(
    table: Patient, low: int | None, high: int | None, expected: str
) -> None:
    table.write(enter("a", 9), enter("b", 10), enter("c", 100), enter("n", -5))
    assert due(table) == ["n", "a", "b", "c"]
    wanted = {"an": ["n", "a"], "bn": ["a", "b"]}.get(expected, list(expected))
    assert due(table, Range(low, high)) == wanted[: len(expected)] or low == -5
    if low == -5:
        assert due(table, Range(low, high)) == ["n"]


def test_a_page_of_an_index_shows_whole_items(table: Patient) -> None:
    table.write(enter("a", 5, body={"x": b"\0"}))
    page = table.query("due", "shard")
    assert page.items == (
        {"pk": "pk", "sk": "a", "due_shard": "shard", "due_at": 5, "body": {"x": b"\0"}},
    )
    assert page.cursor is None


def test_an_item_without_both_attributes_is_in_no_index(table: Patient) -> None:
    table.write(
        Put(("pk", "hash"), {"due_shard": "shard"}),
        Put(("pk", "sort"), {"due_at": 5, "tenant_key": "shard"}),
        enter("both"),
    )
    assert due(table) == ["both"]
    assert table.pages("tenant", "shard") == []


def test_an_item_enters_moves_in_and_leaves_an_index(table: Patient) -> None:
    table.write(Put(("pk", "a"), {"n": 1}), enter("b", 10))
    assert due(table) == ["b"]
    table.write(Update(("pk", "a"), set={"due_shard": "shard", "due_at": 5}))
    assert due(table) == ["a", "b"]
    table.write(Update(("pk", "a"), add={"due_at": 15}))
    assert due(table) == ["b", "a"]
    table.write(Update(("pk", "a"), set={"due_shard": "elsewhere"}))
    assert due(table) == ["b"]
    assert names(table.pages("due", "elsewhere")) == ["a"]
    table.write(Update(("pk", "a"), remove=("due_at",)), Delete(("pk", "b")))
    assert due(table) == table.pages("due", "elsewhere") == []
    assert len(table.pages(None, "pk")) == 1


def test_a_put_without_the_attributes_leaves_the_index(table: Patient) -> None:
    table.write(enter("a"))
    assert due(table) == ["a"]
    table.write(Put(("pk", "a"), {"n": 1}))
    assert due(table) == []


def test_an_item_can_be_in_two_indexes(table: Patient) -> None:
    table.write(enter("a", 5, tenant_key="t", tenant_sort="2030"))
    assert due(table) == names(table.pages("tenant", "t")) == ["a"]
    assert names(table.pages("tenant", "t", Range("2029", "2031"))) == ["a"]


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 25, 26, 100])
@pytest.mark.parametrize("descending", [False, True])
def test_pages_are_complete_and_without_doubles(
    table: Patient, limit: int, descending: bool
) -> None:
    # Equal sort values on purpose: a cursor by sort value alone would skip or repeat.
    table.write(*(enter(f"{n:02}", at=n // 10) for n in range(25)))
    expected = sorted((f"{n:02}" for n in range(25)), reverse=descending)
    for index, hash in ((None, "pk"), ("due", "shard")):
        assert names(table.pages(index, hash, limit=limit, descending=descending)) == expected


def test_the_last_page_has_no_cursor_and_a_full_one_in_between_has(table: Patient) -> None:
    table.write(*(enter(str(n), n) for n in range(4)))
    cursor = table.query("due", "shard", limit=1).cursor
    assert cursor is not None
    rest = table.pages("due", "shard", Range(high=2), limit=3)
    assert len(rest) == 3


def test_a_cursor_goes_on_where_an_item_was_removed(table: Patient) -> None:
    table.write(*(enter(str(n), n) for n in range(6)))
    page = table.query("due", "shard", limit=1)
    table.write(Delete(("pk", "0")), Delete(("pk", "1")))
    rest, cursor = [], page.cursor
    while cursor:
        page = table.query("due", "shard", limit=2, cursor=cursor)
        rest += names(list(page.items))
        cursor = page.cursor
    assert rest == ["2", "3", "4", "5"]


def test_a_cursor_says_nothing_of_its_making_and_is_plain_text(table: Patient) -> None:
    table.write(enter("\0😀", 1), enter("b", 2))
    cursor = table.query("due", "shard", limit=1).cursor
    assert cursor
    assert cursor.isascii()
    assert not set(cursor) & set(" /+?&#%\n")


@pytest.mark.parametrize(
    "forged",
    ["", "x", "AAAA", "e30=", "W10=", "bnVsbA==", "WzEsMiwzLDQsNSw2XQ==", "é", "[" * 5000, "=" * 9],
)
def test_a_forged_cursor_is_refused(table: Patient, forged: str) -> None:
    with pytest.raises(ValueError, match="cursor"):
        table.query("due", "shard", cursor=forged)


def test_a_cursor_of_another_query_is_refused(table: Patient) -> None:
    table.write(*(enter(str(n), n) for n in range(4)))
    cursor = table.query("due", "shard", limit=1).cursor
    assert cursor
    for index, hash, descending in (
        ("due", "other", False),
        ("tenant", "shard", False),
        (None, "shard", False),
        ("due", "shard", True),
    ):
        with pytest.raises(ValueError, match="cursor"):
            table.query(index, hash, cursor=cursor, descending=descending)


def test_paging_sees_what_was_there_once_while_others_insert(table: Patient) -> None:
    old = [f"{n:04}-old" for n in range(0, 600, 10)]
    for start in range(0, len(old), 50):
        table.write(*(enter(key, at=int(key[:4])) for key in old[start : start + 50]))
    stop = threading.Event()

    def insert() -> None:
        chance = random.Random(2)
        while not stop.wait(0.001):  # paging must be faster than this, or it never ends
            at = chance.randrange(600)
            table.write(enter(f"{at:04}-new{chance.random()}", at))

    thread = threading.Thread(target=insert)
    table.query("due", "shard")  # what is old is in every replica now
    thread.start()
    try:
        for descending in (False, True):
            found = table.pages("due", "shard", limit=7, descending=descending)
            seen = [str(name) for name in names(found)]
            assert len(set(seen)) == len(seen)
            assert sorted(n for n in seen if n.endswith("old")) == old
    finally:
        stop.set()
        thread.join()
