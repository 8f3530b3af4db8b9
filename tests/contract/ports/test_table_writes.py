"""The Table port: conditions, transactions, and what a write does to an item."""

from __future__ import annotations

import pytest

from sandbox_router.table import (
    ALWAYS,
    Check,
    Condition,
    ConditionFailed,
    Delete,
    Op,
    Put,
    Test,
    Update,
    Value,
    missing,
    when,
)
from tests.contract.ports.conftest import Patient

KEY = ("pk", "sk")
OTHER = ("pk", "other")
THIRD = ("pk2", "sk")
STORED: dict[str, Value] = {
    "n": 5,
    "s": "b",
    "on": True,
    "raw": b"\x01\x02",
    "nil": None,
    "list": [1, "x", None],
    "map": {"a": 1},
}
CONDITIONS: list[tuple[str, str, Value, bool]] = [
    *[("n", "=", 5, True), ("n", "=", 6, False), ("n", "<>", 6, True), ("n", "<>", 5, False)],
    *[("n", "<", 6, True), ("n", "<", 5, False), ("n", "<=", 5, True), ("n", "<=", 4, False)],
    *[("n", ">", 4, True), ("n", ">", 5, False), ("n", ">=", 5, True), ("n", ">=", 6, False)],
    *[("s", "=", "b", True), ("s", "=", "B", False), ("s", "<", "c", True), ("s", ">", "a", True)],
    *[("s", "<", "ba", True), ("s", ">", "", True), ("s", "<>", "", True)],
    *[("raw", "=", b"\x01\x02", True), ("raw", "<", b"\x01\x03", True), ("raw", ">", b"", True)],
    *[("on", "=", True, True), ("on", "=", False, False), ("on", "<>", False, True)],
    *[("nil", "=", None, True), ("nil", "exists", None, True), ("nil", "missing", None, False)],
    *[("list", "=", [1, "x", None], True), ("list", "=", [1, "x"], False)],
    *[("map", "=", {"a": 1}, True), ("map", "<>", {"a": 2}, True)],
    # Another type is never equal nor in order, and always unequal.
    *[("n", "=", "5", False), ("n", "<", "6", False), ("n", ">", "4", False)],
    *[("n", "<>", "5", True), ("s", "=", b"b", False), ("nil", "=", "", False)],
    *[("on", "=", 1, False), ("n", "=", None, False), ("s", "<>", 1, True)],
    # A missing attribute satisfies only `missing`.
    *[("no", "missing", None, True), ("no", "exists", None, False), ("no", "=", None, False)],
    *[("no", "<>", 1, False), ("no", "<", 1, False), ("no", "<=", 1, False)],
    *[("no", ">", 1, False), ("no", ">=", 1, False), ("n", "exists", None, True)],
    *[("pk", "exists", None, True), ("pk", "=", "pk", True), ("sk", "missing", None, False)],
]


def holds(table: Patient, condition: Condition) -> bool:
    try:
        table.write(Check(KEY, condition))
    except ConditionFailed:
        return False
    return True


@pytest.mark.parametrize(("attr", "op", "value", "expected"), CONDITIONS)
def test_a_comparison_holds_as_dynamodb_says(
    table: Patient, attr: str, op: Op, value: Value, expected: bool
) -> None:
    table.write(Put(KEY, STORED))
    assert holds(table, when(Test(attr, op, value))) is expected


@pytest.mark.parametrize(("op", "expected"), [("missing", True), ("exists", False), ("=", False)])
def test_an_absent_item_has_no_attribute(table: Patient, op: Op, expected: bool) -> None:
    assert holds(table, when(Test("n", op, 5))) is expected


def test_all_tests_of_one_alternative_must_hold(table: Patient) -> None:
    table.write(Put(KEY, STORED))
    assert holds(table, when(Test("n", "=", 5), Test("s", "=", "b")))
    assert not holds(table, when(Test("n", "=", 5), Test("s", "=", "c")))


def test_one_alternative_is_enough(table: Patient) -> None:
    table.write(Put(KEY, STORED))
    wrong, right = (Test("n", "=", 6),), (Test("s", "=", "b"), Test("n", ">", 1))
    assert holds(table, (wrong, right))
    assert not holds(table, (wrong, (*right, Test("no", "exists"))))
    assert holds(table, ALWAYS)


def test_an_item_comes_back_as_it_was_put(table: Patient) -> None:
    table.write(Put(KEY, STORED))
    assert table.get(KEY) == {**STORED, "pk": "pk", "sk": "sk"}


@pytest.mark.parametrize(
    "value",
    [
        *["", "\0", "a\0b", "😀", "\ufeff", "\u2028", '"\\', "e\u0301", "\U0010ffff", "\x7f\x01"],
        *[0, -1, 2**63 - 1, -(2**63) + 1, True, False, None, b"", b"\x00\xff", [], {}],
        *[{"$b": "x"}, {" ": {"\0": [b"", {"😀": None}]}}, [[["deep"]]], [True, 1, "1", b"1"]],
    ],
)
def test_a_value_survives_with_its_type(table: Patient, value: Value) -> None:
    table.write(Put(KEY, {"v": value}))
    item = table.get(KEY)
    assert item is not None
    assert repr(item["v"]) == repr(value)
    assert holds(table, when(Test("v", "=", value)))


@pytest.mark.parametrize("part", ["\0", "a\0b", "a", "😀", "a b", "'; --", "%", "a" * 1000])
def test_keys_are_kept_apart_byte_for_byte(table: Patient, part: str) -> None:
    table.write(Put((part, "x"), {"n": 1}), Put((part + "\0", "x"), {"n": 2}))
    found = [table.get((p, "x")) for p in (part, part + "\0", part.upper() + "-")]
    assert [item and item["n"] for item in found] == [1, 2, None]


def test_changing_what_was_given_or_got_changes_nothing(table: Patient) -> None:
    given: dict[str, Value] = {"list": [1]}
    table.write(Put(KEY, given))
    for item in (given, table.get(KEY), table.query(None, "pk").items[0]):
        assert item
        inside = item["list"]
        assert isinstance(inside, list)
        inside.append(2)
    got = table.get(KEY)
    assert got
    assert got["list"] == [1]


def test_put_replaces_the_whole_item(table: Patient) -> None:
    table.write(Put(KEY, {"a": 1, "b": 2}))
    table.write(Put(KEY, {"c": 3}))
    assert table.get(KEY) == {"pk": "pk", "sk": "sk", "c": 3}


def test_update_sets_removes_and_adds_and_leaves_the_rest(table: Patient) -> None:
    table.write(Put(KEY, {"a": 1, "b": 2, "n": 3, "keep": {"x": 1}}))
    table.write(Update(KEY, set={"a": "one"}, remove=("b", "never"), add={"n": -4, "new": 7}))
    expected = {"a": "one", "n": -1, "new": 7, "keep": {"x": 1}}
    assert table.get(KEY) == {"pk": "pk", "sk": "sk", **expected}


def test_update_makes_a_missing_item(table: Patient) -> None:
    table.write(Update(KEY, add={"n": 1}), Update(OTHER))
    assert table.get(KEY) == {"pk": "pk", "sk": "sk", "n": 1}
    assert table.get(OTHER) == {"pk": "pk", "sk": "other"}


def test_delete_removes_and_does_not_mind_a_missing_item(table: Patient) -> None:
    table.write(Put(KEY, {"n": 1}))
    table.write(Delete(KEY), Delete(OTHER))
    assert table.get(KEY) is None


def test_a_check_changes_nothing(table: Patient) -> None:
    table.write(Check(KEY, missing()), Put(OTHER, {}))
    assert table.get(KEY) is None


def test_conditions_see_the_item_before_the_write(table: Patient) -> None:
    table.write(Put(KEY, {"n": 1}))
    table.write(Update(KEY, set={"n": 2}, when=when(Test("n", "=", 1))))
    with pytest.raises(ConditionFailed):
        table.write(Update(KEY, set={"n": 3}, when=when(Test("n", "=", 3))))


def test_no_write_of_a_failed_transaction_happens(table: Patient) -> None:
    table.write(Put(THIRD, {"n": 1}))
    with pytest.raises(ConditionFailed):
        table.write(
            Put(KEY, {"n": 1}),
            Update(THIRD, add={"n": 1}),
            Delete(OTHER, when(Test("pk", "exists"))),
        )
    assert table.get(KEY) is None
    assert table.get(THIRD) == {"pk": "pk2", "sk": "sk", "n": 1}


def test_a_failed_condition_shows_each_item_that_failed(table: Patient) -> None:
    table.write(Put(KEY, {"n": 1}), Put(THIRD, {"raw": b"\0"}))
    with pytest.raises(ConditionFailed) as caught:
        table.write(
            Put(KEY, {"n": 2}, missing()),
            Check(THIRD, when(Test("pk", "exists"))),
            Check(OTHER, when(Test("pk", "exists"))),
            Put(("pk", "fourth"), {}),
        )
    assert caught.value.old == ({"pk": "pk", "sk": "sk", "n": 1}, None, {}, None)


def test_every_kind_of_write_obeys_its_condition(table: Patient) -> None:
    never = when(Test("no", "exists"))
    table.write(Put(KEY, {"n": 1}))
    for write in (
        Put(KEY, {}, never),
        Update(KEY, set={"n": 2}, when=never),
        Delete(KEY, never),
        Check(KEY, never),
    ):
        with pytest.raises(ConditionFailed):
            table.write(write)
    assert table.get(KEY) == {"pk": "pk", "sk": "sk", "n": 1}


def test_nothing_to_write_is_fine(table: Patient) -> None:
    table.write()
