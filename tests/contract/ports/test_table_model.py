"""Any history of writes leaves a driver and the reference with the same answers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from adapters.aws.session import Session
from adapters.aws.table import DynamoTable
from adapters.embedded.table import SqliteTable
from sandbox_router.ports import Table
from sandbox_router.table import (
    Check,
    Condition,
    ConditionFailed,
    Delete,
    Key,
    Op,
    Put,
    Range,
    Test,
    Update,
    Value,
    Write,
)
from tests.contract.aws.cloud import table_of
from tests.fakes.table import MemoryTable

TEXTS = st.sampled_from(["", "a", "b", "\0", "a\0", "😀", "é"]) | st.text(max_size=3)
NUMBERS = st.integers(-3, 3) | st.integers(-(2**64), 2**64)
SCALARS = TEXTS | NUMBERS | st.booleans() | st.none() | st.binary(max_size=3)
VALUES: st.SearchStrategy[Value] = st.recursive(
    SCALARS | st.sampled_from([1.5, (1,)]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=4,
)
ATTRIBUTES = st.sampled_from(["n", "v", "due_shard", "due_at", "tenant_key", "tenant_sort", "ttl"])
PKS, SKS = ("p", "q"), ("1", "2", "\0")
KEYS: st.SearchStrategy[Key] = st.tuples(
    st.sampled_from(["p", "q"]), st.sampled_from(["1", "2", "\0"])
)
HASHES = st.sampled_from(["p", "s"])


def attribute(name: str) -> st.SearchStrategy[tuple[str, Value]]:
    """Mostly what fits the attribute, so that many items are in an index; now and then not."""
    fits: st.SearchStrategy[Value] = {
        "due_shard": HASHES,
        "tenant_key": HASHES,
        "due_at": NUMBERS | TEXTS,
        "tenant_sort": TEXTS,
        "n": NUMBERS,
        "ttl": st.integers(0, 4),
    }.get(name, VALUES)
    return st.tuples(st.just(name), st.one_of(fits, fits, fits, VALUES))


ITEMS = st.lists(ATTRIBUTES.flatmap(attribute), max_size=4).map(dict)
OPS: st.SearchStrategy[Op] = st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "exists", "missing"])
TESTS = st.builds(Test, ATTRIBUTES | st.sampled_from(["pk", "sk"]), OPS, SCALARS | VALUES)
CONDITIONS: st.SearchStrategy[Condition] = st.just(()) | st.lists(
    st.lists(TESTS, max_size=2).map(tuple), max_size=2
).map(tuple)
WRITES: st.SearchStrategy[Write] = st.one_of(
    st.builds(Put, KEYS, ITEMS, CONDITIONS),
    st.builds(
        Update,
        KEYS,
        ITEMS,
        st.lists(ATTRIBUTES, max_size=2).map(tuple),
        st.dictionaries(ATTRIBUTES, NUMBERS, max_size=1),
        CONDITIONS,
    ),
    st.builds(Delete, KEYS, CONDITIONS),
    st.builds(Check, KEYS, CONDITIONS),
)
QUERIES = st.tuples(
    st.sampled_from([None, "due", "tenant"]),
    HASHES,
    st.builds(Range, st.none() | NUMBERS, st.none() | NUMBERS)
    | st.builds(Range, st.none() | TEXTS, st.none() | TEXTS),
    st.integers(1, 3),
    st.booleans(),
)


def answer(table: Table, writes: tuple[Write, ...]) -> object:
    try:
        table.write(*writes)
    except ConditionFailed as failed:
        return repr([old and sorted(old.items()) for old in failed.old])
    except (TypeError, ValueError) as error:
        return type(error)
    return None


def content(table: Table) -> str:
    items = [table.get((pk, sk)) for pk in PKS for sk in SKS]
    return repr([item and sorted(item.items()) for item in items])


def pages(
    table: Table, index: str | None, hash: str, range: Range, limit: int, descending: bool
) -> object:
    found, cursor = [], None
    try:
        while True:
            page = table.query(
                index, hash, range, limit=limit, cursor=cursor, descending=descending
            )
            found += [sorted(item.items()) for item in page.items]
            if (cursor := page.cursor) is None:
                return repr(found)
    except (TypeError, ValueError) as error:
        return type(error)


@pytest.fixture(scope="module")
def sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqliteTable]:
    table = SqliteTable(tmp_path_factory.mktemp("model") / "table.db")
    yield table
    table.close()


@pytest.fixture(scope="module")
def dynamodb(account: Session) -> Iterator[DynamoTable]:
    with table_of(account) as table:
        yield table


HISTORIES = st.lists(st.lists(WRITES, min_size=1, max_size=3).map(tuple), max_size=12)
Histories = list[tuple[Write, ...]]
Queries = list[tuple[str | None, str, Range, int, bool]]


def answered_alike(table: Table, history: Histories, queries: Queries) -> MemoryTable:
    """The reference after the history and the queries, which the table answered as it did."""
    memory = MemoryTable()
    table.write(*(Delete((pk, sk)) for pk in PKS for sk in SKS))
    for writes in history:
        assert answer(table, writes) == answer(memory, writes)
    assert content(table) == content(memory)
    for query in queries:
        assert pages(table, *query) == pages(memory, *query)
    return memory


@settings(deadline=None, max_examples=120)
@given(HISTORIES, st.lists(QUERIES, max_size=6), st.integers(0, 4))
def test_sqlite_answers_alike(
    sqlite: SqliteTable, history: Histories, queries: Queries, now: int
) -> None:
    memory = answered_alike(sqlite, history, queries)
    assert sorted(map(str, sqlite.purge(now))) == sorted(map(str, memory.purge(now)))
    assert content(sqlite) == content(memory)


@settings(deadline=None, max_examples=40, phases=set(Phase) - {Phase.shrink, Phase.explain})
@given(HISTORIES, st.lists(QUERIES, max_size=6))
def test_dynamodb_answers_alike(
    dynamodb: DynamoTable, history: Histories, queries: Queries
) -> None:
    answered_alike(dynamodb, history, queries)
