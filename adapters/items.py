"""What every driver of the Table port refuses, as DynamoDB does, and its cursors."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping

from sandbox_router.table import (
    INDEXES,
    PK,
    SK,
    Check,
    Condition,
    Delete,
    Item,
    Key,
    Put,
    Range,
    Update,
    Value,
    Write,
    applied,
)

MAX_WRITES, MAX_ITEM, MAX_DEPTH, MAX_INT = 100, 400 * 1024, 32, 2**63 - 1
SORTS: Mapping[str, type] = {"due_at": int, "tenant_sort": str}
"""The one type of each index's sort attribute: DynamoDB declares it with the table."""
Position = tuple[Value, str, str]
"""Where a page ended: sort value, pk, sk."""


def check(writes: tuple[Write, ...]) -> None:
    """Refuse what no driver stores, before anything is looked at."""
    if len(writes) > MAX_WRITES:
        raise ValueError(f"{len(writes)} writes in one transaction, at most {MAX_WRITES}")
    if len({write.key for write in writes}) < len(writes):
        raise ValueError("two writes of one transaction have the same key")
    for write in writes:
        check_key(write.key)
        _check_condition(write.when)
        match write:
            case Put():
                keyed = {**write.item, PK: write.key[0], SK: write.key[1]}
                if {**keyed, **write.item} != keyed:
                    raise ValueError("the item's own key is another one")
                _check_item(keyed)
            case Update():
                _check_update(write)
            case Delete() | Check():
                pass


def check_key(key: Key) -> None:
    """Both parts are strings with something in them."""
    for part in key:
        if weight(part, str) == 0:
            raise ValueError("a key part is empty")


def check_query(index: str | None, hash: str, range: Range, limit: int) -> None:
    """Refuse a query no driver answers."""
    if limit < 1 or (index is not None and index not in INDEXES):
        raise ValueError("no such index, or a limit under 1")
    weight(hash, str)
    sorts = str if index is None else SORTS[INDEXES[index][1]]
    for bound in (range.low, range.high):
        weight(bound, sorts, type(None))


def _check_update(write: Update) -> None:
    names = [*write.set, *write.remove, *write.add]
    for name in names:
        _name(name)
    if len(set(names)) < len(names):
        raise ValueError("an update names one attribute twice")
    if {PK, SK} & set(names):
        raise ValueError("an update cannot change the key")
    weight(dict(write.set))
    _check_places({**write.set, **write.add})
    for more in write.add.values():
        weight(more, int)


def _check_condition(condition: Condition) -> None:
    for test in (test for tests in condition for test in tests):
        if test.op in ("<", "<=", ">", ">="):
            weight(test.value, str, int, bytes)
        else:
            weight(test.value)


def weight(value: Value, *allowed: type, depth: int = 0) -> int:
    """About the bytes DynamoDB counts; TypeError for what is no value, else ValueError.

    Subclasses (enums, booleans as numbers) are no values: they would come back as another type,
    and conditions compare types.
    """
    kind = type(value)
    if allowed and kind not in allowed:
        raise TypeError(f"{kind.__name__} cannot stand here")
    if depth > MAX_DEPTH:
        raise ValueError(f"nested more than {MAX_DEPTH} deep")
    match value:
        case str() if kind is str:
            return len(value.encode())  # a lone surrogate raises a ValueError here
        case int() if kind is int:
            if not -MAX_INT <= value <= MAX_INT:
                raise ValueError("a number is over 64 bits")
            return 10
        case bytes() if kind is bytes:
            return len(value)
        case bool() | None:
            return 1
        case list() if kind is list:
            return 3 + sum(1 + weight(each, depth=depth + 1) for each in value)
        case dict() if kind is dict:
            each = value.items()
            return 3 + sum(1 + _name(k) + weight(v, depth=depth + 1) for k, v in each)
    raise TypeError(f"{kind.__name__} is no value of an item")


def _name(name: str) -> int:
    size = weight(name, str)
    if size == 0:
        raise ValueError("a name is empty")
    return size


def after(write: Write, before: Item | None) -> Item | None:
    """`applied`, with DynamoDB's refusals of what it would store."""
    if isinstance(write, Update):
        for attr in write.add:
            weight((before or {}).get(attr, 0), int)
    item = applied(write, before)
    if item is not None:
        _check_item(item)
    return item


def _check_item(item: Item) -> None:
    if weight(dict(item)) > MAX_ITEM:
        raise ValueError(f"an item over {MAX_ITEM} bytes")
    _check_places(item)


def _check_places(attributes: Item) -> None:
    """Refuse what cannot stand in an index: hashes are text with something in it, sort values of
    their index's type.
    """
    for hashed, sorts in INDEXES.values():
        if weight(attributes.get(hashed, "-"), str) == 0:
            raise ValueError(f"{hashed} is empty")
        if weight(attributes.get(sorts, SORTS[sorts](1)), SORTS[sorts]) == 0:
            raise ValueError(f"{sorts} is empty")


def places(item: Item) -> dict[str, tuple[Value, Value]]:
    """Hash and sort value for each index the item is in."""
    return {
        name: (item[hashed], item[sorts])
        for name, (hashed, sorts) in INDEXES.items()
        if hashed in item and sorts in item
    }


def to_cursor(index: str | None, hash: str, descending: bool, position: Position) -> str:
    """An opaque cursor that only its own query takes."""
    text = json.dumps([index, hash, descending, *position])
    return base64.urlsafe_b64encode(text.encode()).decode()


def from_cursor(index: str | None, hash: str, descending: bool, cursor: str) -> Position:
    """The position in a cursor of this query; ValueError for any other text."""
    try:
        *query, sort, pk, sk = json.loads(base64.b64decode(cursor, altchars=b"-_", validate=True))
        weight(sort, str, int)
        check_key((pk, sk))
    except (ValueError, TypeError, RecursionError):
        raise ValueError("not a cursor") from None
    if query != [index, hash, descending]:
        raise ValueError("a cursor of another query")
    return sort, pk, sk
