"""The Table port refuses what DynamoDB would, and then nothing was written."""

from __future__ import annotations

from enum import IntEnum, StrEnum
from types import MappingProxyType

import pytest

from sandbox_router.table import Check, Delete, Put, Range, Test, Update, Value, Write, when
from tests.contract.ports.conftest import Patient

KEY = ("pk", "sk")


class Word(StrEnum):
    A = "a"


class Number(IntEnum):
    ONE = 1


def nested(depth: int) -> Value:
    value: Value = "x"
    for _ in range(depth):
        value = [value]
    return value


def refused(table: Patient, error: type[Exception], *writes: Write) -> None:
    with pytest.raises(error):
        table.write(Put(("pk", "companion"), {}), *writes)
    assert table.get(("pk", "companion")) is None


@pytest.mark.parametrize(
    "value",
    [
        *[1.0, float("nan"), (1, 2), {1}, object(), bytearray(b"x"), 1j, Word.A, Number.ONE],
        *[{1: "a"}, {None: 1}, MappingProxyType({}), [1.5], {"a": {"b": (1,)}}],
    ],
    ids=lambda value: type(value).__name__,  # the same in every process, unlike addresses
)
def test_what_is_no_value_is_refused(table: Patient, value: Value) -> None:
    refused(table, TypeError, Put(KEY, {"v": value}))
    refused(table, TypeError, Update(KEY, set={"v": value}))
    refused(table, TypeError, Check(KEY, when(Test("v", "<>", value))))


@pytest.mark.parametrize("value", ["\ud800", "a\udfff", ["\udc00"], {"\udc00": "AA=="}], ids=ascii)
def test_a_lone_surrogate_is_refused(table: Patient, value: Value) -> None:
    refused(table, ValueError, Put(KEY, {"v": value}))
    refused(table, ValueError, Update(KEY, set={"v": value}))


@pytest.mark.parametrize("number", [2**63, -(2**63), 10**40])
def test_a_number_over_64_bits_is_refused(table: Patient, number: int) -> None:
    refused(table, ValueError, Put(KEY, {"v": number}))


def test_a_sum_over_64_bits_is_refused(table: Patient) -> None:
    table.write(Put(KEY, {"n": 2**63 - 1}))
    refused(table, ValueError, Update(KEY, add={"n": 1}))


@pytest.mark.parametrize("have", ["5", True, None, [1]])
def test_adding_to_what_is_no_number_is_refused(table: Patient, have: Value) -> None:
    table.write(Put(KEY, {"n": have}))
    refused(table, TypeError, Update(KEY, add={"n": 1}))


@pytest.mark.parametrize("value", [None, True, [1], {"a": 1}])
def test_only_strings_numbers_and_bytes_have_an_order(table: Patient, value: Value) -> None:
    refused(table, TypeError, Check(KEY, when(Test("v", "<", value))))


@pytest.mark.parametrize("key", [("", "sk"), ("pk", ""), ("\ud800", "sk")])
def test_a_key_must_be_text_with_something_in_it(table: Patient, key: tuple[str, str]) -> None:
    refused(table, ValueError, Delete(key))
    with pytest.raises(ValueError, match=r"empty|surrogates"):
        table.get(key)


def test_a_key_that_is_no_text_is_refused(table: Patient) -> None:
    refused(table, TypeError, Delete(("pk", 1)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "write",
    [
        Update(KEY, set={"a": 1}, remove=("a",)),
        Update(KEY, set={"a": 1}, add={"a": 1}),
        Update(KEY, remove=("a", "a")),
        Update(KEY, set={"pk": "x"}),
        Update(KEY, remove=("sk",)),
        Put(KEY, {"pk": "another"}),
    ],
)
def test_a_write_that_contradicts_itself_is_refused(table: Patient, write: Write) -> None:
    refused(table, ValueError, write)


@pytest.mark.parametrize(
    "write",
    [
        *[Put(KEY, {"": 1}), Put(KEY, {"v": [{"": 1}]}), Update(KEY, set={"": 1})],
        *[Update(KEY, remove=("",)), Update(KEY, add={"": 1})],
    ],
)
def test_a_name_has_something_in_it(table: Patient, write: Write) -> None:
    refused(table, ValueError, write)


def test_a_hundred_writes_are_one_transaction_and_more_are_refused(table: Patient) -> None:
    table.write(*(Put(("many", f"{n:03}"), {"n": n}) for n in range(100)))
    assert len(table.pages(None, "many", limit=30)) == 100
    refused(table, ValueError, *(Put(("more", str(n)), {}) for n in range(100)))


def test_one_key_cannot_be_written_twice_in_a_transaction(table: Patient) -> None:
    refused(table, ValueError, Check(KEY), Put(KEY, {}))


@pytest.mark.parametrize("unit", ["x", b"\xff", "é"])
def test_an_item_over_400_kilobytes_is_refused(table: Patient, unit: str | bytes) -> None:
    size = len(unit.encode() if isinstance(unit, str) else unit)
    table.write(Put(KEY, {"v": unit * (395 * 1024 // size)}))  # moto's limit is 405,000 bytes
    refused(table, ValueError, Put(("pk", "big"), {"v": unit * (401 * 1024 // size)}))
    refused(table, ValueError, Update(KEY, set={"w": unit * (6144 // size)}))


def test_values_nest_32_deep_and_no_deeper(table: Patient) -> None:
    table.write(Put(KEY, {"v": nested(31)}))
    refused(table, ValueError, Put(KEY, {"v": nested(33)}))
    refused(table, ValueError, Put(KEY, {"v": nested(10_000)}))


@pytest.mark.parametrize(
    "item",
    [
        *[{"due_at": 1.5}, {"due_at": None}, {"due_at": True}, {"due_at": "5"}],
        *[{"tenant_sort": 5}, {"tenant_sort": b"5"}],
    ],
)
def test_an_index_sorts_values_of_its_one_type(table: Patient, item: dict[str, Value]) -> None:
    refused(table, TypeError, Put(KEY, {"due_shard": "s", **item}))
    refused(table, TypeError, Update(KEY, set={"due_shard": "s", **item}))


@pytest.mark.parametrize(("shard", "error"), [(1, TypeError), (None, TypeError), ("", ValueError)])
def test_an_index_is_hashed_by_text(table: Patient, shard: Value, error: type[Exception]) -> None:
    refused(table, error, Put(KEY, {"due_shard": shard, "due_at": 1}))
    refused(table, error, Update(KEY, set={"due_shard": shard}))


def test_a_query_that_makes_no_sense_is_refused(table: Patient) -> None:
    with pytest.raises(ValueError, match="index"):
        table.query("never", "x")
    with pytest.raises(ValueError, match="limit"):
        table.query(None, "x", limit=0)
    for index, wrong in ((None, 1.5), (None, 1), ("due", "1"), ("tenant", 1)):
        with pytest.raises(TypeError):
            table.query(index, "x", Range(low=wrong))
        with pytest.raises(TypeError):
            table.query(index, "x", Range(high=wrong))
