"""The storage language: keys, conditions and writes with DynamoDB's semantics.

An item is a mapping of attribute names to values; numbers are integers. Conditions are alternatives
of conjunctions (`Condition`), evaluated on the item before the write. `holds` and `applied` are the
reference semantics for drivers that evaluate in Python.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Value = object
"""str | int | bool | bytes | None | list[Value] | dict[str, Value]; drivers refuse anything else.
"""

Item = Mapping[str, Value]
Key = tuple[str, str]
Op = Literal["=", "<>", "<", "<=", ">", ">=", "exists", "missing"]

PK, SK = "pk", "sk"
"""Attribute names of the primary key; every stored item carries both."""

INDEXES: Mapping[str, tuple[str, str]] = {
    "due": ("due_shard", "due_at"),
    "tenant": ("tenant_key", "tenant_sort"),
}
"""Sparse indexes: an item is in one when it has both attributes; all attributes are projected."""

TTL = "ttl"
"""Attribute with the second after which a driver may delete the item."""


@dataclass(frozen=True)
class Test:
    """One comparison; a missing attribute satisfies only `missing`."""

    __test__ = False

    attr: str
    op: Op
    value: Value = None


Condition = tuple[tuple[Test, ...], ...]
ALWAYS: Condition = ()


@dataclass(frozen=True)
class Put:
    """Store a whole item, replacing what was there."""

    key: Key
    item: Item
    when: Condition = ALWAYS


@dataclass(frozen=True)
class Update:
    """Set, remove and add to attributes; creates the item when it is missing."""

    key: Key
    set: Mapping[str, Value] = field(default_factory=dict)
    remove: tuple[str, ...] = ()
    add: Mapping[str, int] = field(default_factory=dict)
    when: Condition = ALWAYS


@dataclass(frozen=True)
class Delete:
    """Remove an item; a missing one is fine."""

    key: Key
    when: Condition = ALWAYS


@dataclass(frozen=True)
class Check:
    """A condition on an item this transaction does not change."""

    key: Key
    when: Condition = ALWAYS


Write = Put | Update | Delete | Check


@dataclass(frozen=True)
class Range:
    """Bounds on the sort value, both inclusive; None is open."""

    low: Value = None
    high: Value = None


EVERYTHING = Range()


@dataclass(frozen=True)
class Page:
    """Items of one query page; `cursor` is None at the end. A page may be short."""

    items: tuple[Item, ...]
    cursor: str | None


class TableError(Exception):
    """Root of what a driver raises besides success."""


class ConditionFailed(TableError):
    """Nothing was written; `old` has, per write, the item that failed its condition, else None."""

    def __init__(self, old: tuple[Item | None, ...]) -> None:
        """One entry per write of the call, in order; an absent item that failed is `{}`."""
        super().__init__("condition failed")
        self.old = old


class Contended(TableError):
    """Nothing was written: another transaction or a throttle was in the way. Try again."""


class Lost(TableError):
    """Nobody knows whether it was written: the acknowledgement did not arrive."""


def missing() -> Condition:
    """The item does not exist."""
    return ((Test(PK, "missing"),),)


def when(*tests: Test) -> Condition:
    """All tests hold."""
    return (tests,)


_ORDER: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def holds(condition: Condition, item: Item | None) -> bool:
    """Does the condition hold for the item as it is (None: absent)?"""
    if not condition:
        return True
    have = item or {}
    return any(all(_holds(test, have) for test in tests) for tests in condition)


def _holds(test: Test, item: Item) -> bool:
    if test.op == "missing":
        return test.attr not in item
    if test.op == "exists" or test.attr not in item:
        return test.op == "exists" and test.attr in item
    have, value = item[test.attr], test.value
    if test.op in ("=", "<>"):
        return _same(have, value) is (test.op == "=")
    return type(have) is type(value) and _ORDER[test.op](have, value)


def _same(a: Any, b: Any) -> bool:
    """Equal in value and in type, all the way down: to Python, but not to a table, 1 is True."""
    if type(a) is not type(b):
        return False
    if isinstance(a, Mapping):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(_same, a, b))
    return bool(a == b)


def applied(write: Write, item: Item | None) -> Item | None:
    """The item after the write, None when it is gone; conditions are not looked at."""
    pk, sk = write.key
    match write:
        case Put():
            return {**write.item, PK: pk, SK: sk}
        case Update():
            changed = {**(item or {PK: pk, SK: sk}), **write.set}
            for attr, more in write.add.items():
                have = changed.get(attr, 0)
                assert isinstance(have, int)
                changed[attr] = have + more
            return {attr: value for attr, value in changed.items() if attr not in write.remove}
        case Delete():
            return None
        case Check():
            return item
