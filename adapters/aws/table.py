"""The Table on one DynamoDB table."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from adapters import items
from sandbox_router.model.failure import Internal
from sandbox_router.table import (
    EVERYTHING,
    INDEXES,
    PK,
    SK,
    Check,
    ConditionFailed,
    Contended,
    Delete,
    Item,
    Key,
    Lost,
    Page,
    Put,
    Range,
    Update,
    Write,
    holds,
)

from . import errors
from .expressions import Expression, decides, key
from .values import decoded, encode, encoded

TRIES = 2
"""How often a transaction is sent: again under its own token after a lost answer. DynamoDB answers
a repeated token with the first try's success for ten minutes (API reference, TransactWriteItems),
so an unknown outcome becomes a known one.
"""
_OPERATION = {Put: "put_item", Update: "update_item", Delete: "delete_item"}
_ACTION = {Put: "Put", Update: "Update", Delete: "Delete", Check: "ConditionCheck"}
Olds = tuple[Item | None, ...]


def _token() -> str:
    return os.urandom(16).hex()  # a ClientRequestToken has 1 to 36 characters


class DynamoTable:
    """`ports.Table` on a table with the keys pk and sk (S) and the indexes of `table.INDEXES`.

    One write is a conditional put, update or delete, several are TransactWriteItems. The client
    must not retry (see `session.ONCE`). Raises Internal when the table is missing or closed to us.
    """

    def __init__(self, client: Any, name: str, tokens: Callable[[], str] = _token) -> None:
        self._client, self._name, self._tokens = client, name, tokens

    def get(self, key: Key, *, consistent: bool = True) -> Item | None:
        items.check_key(key)
        return self._get(key, consistent)

    def write(self, *writes: Write) -> None:
        items.check(writes)
        asked = [w for w in writes if not isinstance(w, Check) or decides(w.when)]
        if not asked:
            return
        if len(asked) > 1:
            self._transact(writes, asked)
        elif isinstance(asked[0], Check):
            self._check(writes, asked[0])
        else:
            self._single(writes, asked[0])

    def query(
        self,
        index: str | None,
        hash: str,
        range: Range = EVERYTHING,
        *,
        limit: int = 100,
        cursor: str | None = None,
        descending: bool = False,
    ) -> Page:
        items.check_query(index, hash, range, limit)
        hashed, sorts = INDEXES[index] if index else (PK, SK)
        start = None
        if cursor is not None:
            start = _start(index, hash, items.from_cursor(index, hash, descending, cursor))
        within = _bounds(range)
        if within is None or not hash:
            return Page((), None)  # DynamoDB refuses to look where nothing can be
        text = Expression()
        request = {
            "KeyConditionExpression": text.place(hashed, sorts, hash, within),
            "Limit": limit + 1,  # one more says whether there is more, and spares an empty page
            "ScanIndexForward": not descending,
            **({"IndexName": index} if index else {"ConsistentRead": True}),
            **({"ExclusiveStartKey": start} if start else {}),
            **text.parameters(),
        }
        answer = self._read("query", request)
        found = [decoded(item) for item in answer.get("Items", ())]
        more = len(found) > limit or "LastEvaluatedKey" in answer
        page = tuple(found[:limit])
        if not more:
            return Page(page, None)
        end = page[-1] if page else decoded(answer["LastEvaluatedKey"])
        at = (end[sorts], str(end[PK]), str(end[SK]))
        return Page(page, items.to_cursor(index, hash, descending, at))

    def _get(self, of: Key, consistent: bool) -> Item | None:
        answer = self._read("get_item", {"Key": key(of), "ConsistentRead": consistent})
        return decoded(answer["Item"]) if "Item" in answer else None

    def _read(self, operation: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            answer: Mapping[str, Any] = self._call(operation, TableName=self._name, **request)
        except Exception as error:
            raise _translated(error, reading=True) from error
        return answer

    def _call(self, operation: str, **request: Any) -> Any:
        return getattr(self._client, operation)(**request)

    def _check(self, writes: tuple[Write, ...], check: Check) -> None:
        """A condition alone is a consistent read: as atomic, and half the price."""
        item = self._get(check.key, consistent=True)
        if not holds(check.when, item):
            raise ConditionFailed(tuple((item or {}) if w is check else None for w in writes))

    def _single(self, writes: tuple[Write, ...], write: Write) -> None:
        request = {"TableName": self._name, **_request(write)}
        if "ConditionExpression" not in request:
            del request["ReturnValuesOnConditionCheckFailure"]
        try:
            self._call(_OPERATION[type(write)], **request)
        except Exception as error:
            if errors.meaning(error) != "condition":
                raise _translated(error) from error
            old = decoded(getattr(error, "response", {}).get("Item") or {})
            _fail(writes, tuple(old if w is write else None for w in writes))

    def _transact(self, writes: tuple[Write, ...], asked: list[Write]) -> None:
        actions = [{_ACTION[type(w)]: {"TableName": self._name, **_request(w)}} for w in asked]
        request = {"TransactItems": actions, "ClientRequestToken": self._tokens()}
        try:
            self._send(request)
        except ConditionFailed as failed:
            by_key = dict(zip((w.key for w in asked), failed.old, strict=True))
            _fail(writes, tuple(by_key.get(w.key) for w in writes))

    def _send(self, request: Mapping[str, Any]) -> None:
        lost = False
        for _ in range(TRIES):
            try:
                self._call("transact_write_items", **request)
                return
            except Exception as error:
                failure = _translated(error)
                if lost and isinstance(failure, Contended):
                    break  # "nothing was written" is not ours to say while a try is unknown
                if not isinstance(failure, Lost):
                    raise failure from error
                lost = True
        raise Lost


def _request(write: Write) -> dict[str, Any]:
    """A write's own parameters, the same alone and in a transaction."""
    text = Expression()
    condition = text.condition(write.when, write.add if isinstance(write, Update) else None)
    request: dict[str, Any] = {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
    if isinstance(write, Put):
        request["Item"] = {**encoded(write.item), **key(write.key)}
    else:
        request["Key"] = key(write.key)
    if isinstance(write, Update):
        request["UpdateExpression"] = text.update(write)
    if condition:
        request["ConditionExpression"] = condition
    return {**request, **text.parameters()}


def _fail(writes: tuple[Write, ...], old: Olds) -> None:
    """Raise what the failed conditions mean: the writes' own, or the room of an addition."""
    pairs = list(zip(writes, old, strict=True))
    own = [o if o is not None and not holds(w.when, o or None) else None for w, o in pairs]
    if any(item is not None for item in own):
        raise ConditionFailed(tuple(own))
    for write, item in pairs:
        if item is not None:
            items.after(write, item or None)
    raise Contended  # the addition has room in the item as it was shown


def _translated(error: Exception, *, reading: bool = False) -> Exception:
    """The port's exception for a client's."""
    match errors.meaning(error):
        case "cancelled":
            return _cancelled(errors.reasons(error))
        case "contended":
            return Contended()
        case "lost":
            return Contended() if reading else Lost()
        case "invalid":
            return ValueError("DynamoDB refuses this request")
        case _:
            errors.note("dynamodb", error)
            return Internal()


def _cancelled(reasons: Sequence[Mapping[str, Any]]) -> Exception:
    """One exception for the reasons, in the order of the writes.

    Whatever was in the way of any write makes it Contended: the conditions of the others may have
    been looked at or not, and a half-known answer must never read as "the key is taken".
    """
    codes = [str(reason.get("Code") or "None") for reason in reasons]
    if not codes or any(code in errors.CONTENDED for code in codes):
        return Contended()
    if set(codes) <= {"None", "ConditionalCheckFailed"}:
        old = (decoded(reason.get("Item") or {}) for reason in reasons)
        pairs = zip(codes, old, strict=True)
        return ConditionFailed(tuple(None if code == "None" else item for code, item in pairs))
    return ValueError("DynamoDB refuses a write of this transaction")


def _bounds(range: Range) -> Range | None:
    """The range as DynamoDB takes it, None when nothing can be in it. A key is never empty, and a
    lower bound above the upper one is refused there.
    """
    low, high = None if range.low == "" else range.low, range.high
    if high == "" or (low is not None and high is not None and low > high):  # type: ignore[operator]
        return None
    return Range(low, high)


def _start(index: str | None, hash: str, position: items.Position) -> dict[str, Any]:
    """Where to go on; ValueError for a position no page of this query ends at."""
    sort, pk, sk = position
    if index is None:
        if (pk, sk) != (hash, sort):
            raise ValueError("not a cursor")
        return key((pk, sk))
    hashed, sorts = INDEXES[index]
    if type(sort) is not items.SORTS[sorts]:
        raise ValueError("not a cursor")
    return {**key((pk, sk)), hashed: {"S": hash}, sorts: encode(sort)}
