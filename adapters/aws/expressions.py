"""DynamoDB's expression language: conditions, updates and key conditions as request parameters.

Every attribute name and value goes through a placeholder, so neither reserved words nor anything a
name may contain (dots, spaces, NUL) can change what an expression means.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.items import MAX_INT
from sandbox_router.table import PK, SK, Condition, Key, Range, Test, Update, Value

from .values import encode

_NOTHING = "sandbox-router:nothing"
"""An attribute no item has: removing it is an update without effect, which a transaction needs
where nothing changes (`Update` without `UpdateExpression` is refused there)."""


class Expression:
    """The placeholders of one request or of one write of a transaction."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._values: dict[str, dict[str, Any]] = {}

    def name(self, attr: str) -> str:
        """The placeholder of an attribute name."""
        return self._names.setdefault(attr, f"#{len(self._names)}")

    def value(self, value: Value) -> str:
        """A new placeholder for a value."""
        placeholder = f":{len(self._values)}"
        self._values[placeholder] = encode(value)
        return placeholder

    def parameters(self) -> dict[str, Any]:
        """What defines the placeholders used; DynamoDB refuses empty and unused ones."""
        given: dict[str, Any] = {}
        if self._names:
            given["ExpressionAttributeNames"] = {p: name for name, p in self._names.items()}
        if self._values:
            given["ExpressionAttributeValues"] = self._values
        return given

    def condition(self, condition: Condition, add: Mapping[str, int] | None = None) -> str:
        """The condition as text, and that the additions have room; empty when it always holds.

        AND binds tighter than OR, and parentheses nobody needs are a ValidationException
        ("redundant parentheses"), so there are no others.
        """
        parts = []
        if decides(condition):
            parts.append(" OR ".join(self._all(tests) for tests in condition))
        parts += [self._room(attr, more) for attr, more in (add or {}).items()]
        if len(parts) < 2:
            return "".join(parts)
        return " AND ".join(f"({part})" if " OR " in part else part for part in parts)

    def _all(self, tests: tuple[Test, ...]) -> str:
        return " AND ".join(self._test(test) for test in tests)

    def _test(self, test: Test) -> str:
        name = self.name(test.attr)
        match test.op:
            case "exists":
                return f"attribute_exists({name})"
            case "missing":
                return f"attribute_not_exists({name})"
            case "<>":  # what is missing is not "unequal" here, whatever DynamoDB says of it
                return f"attribute_exists({name}) AND {name} <> {self.value(test.value)}"
            case "=" if test.value is None:
                return self._typed(name, None)  # there is one null
            case "=":
                return f"{name} = {self.value(test.value)}"
        return f"{self._typed(name, test.value)} AND {name} {test.op} {self.value(test.value)}"

    def _typed(self, name: str, like: Value) -> str:
        """That the attribute is there, with the type of this value: so nothing rests on what an
        order between types might mean.
        """
        (kind,) = encode(like)
        return f"attribute_type({name}, {self.value(kind)})"

    def _room(self, attr: str, more: int) -> str:
        """That a sum is one of numbers and stays within 64 bits: DynamoDB adds up to 38 digits."""
        name = self.name(attr)
        low, high = self.value(-MAX_INT - more), self.value(MAX_INT - more)
        fits = f"{self._typed(name, more)} AND {name} BETWEEN {low} AND {high}"
        return f"attribute_not_exists({name}) OR {fits}"

    def update(self, write: Update) -> str:
        """The update as text; never empty."""
        parts = []
        if write.set:
            sets = (f"{self.name(a)} = {self.value(v)}" for a, v in write.set.items())
            parts.append("SET " + ", ".join(sets))
        removed = write.remove if write.set or write.remove or write.add else (_NOTHING,)
        if removed:
            parts.append("REMOVE " + ", ".join(self.name(attr) for attr in removed))
        if write.add:
            adds = (f"{self.name(a)} {self.value(n)}" for a, n in write.add.items())
            parts.append("ADD " + ", ".join(adds))
        return " ".join(parts)

    def place(self, hashed: str, sorts: str, hash: str, range: Range) -> str:
        """A key condition: one partition, and bounds both of which are inclusive."""
        text = f"{self.name(hashed)} = {self.value(hash)}"
        if range.low is None and range.high is None:
            return text
        name = self.name(sorts)
        if range.high is None:
            return f"{text} AND {name} >= {self.value(range.low)}"
        if range.low is None:
            return f"{text} AND {name} <= {self.value(range.high)}"
        return f"{text} AND {name} BETWEEN {self.value(range.low)} AND {self.value(range.high)}"


def decides(condition: Condition) -> bool:
    """Can it fail? An alternative without tests holds for everything."""
    return bool(condition) and all(condition)


def key(of: Key) -> dict[str, Any]:
    """A primary key as a request has it."""
    return {PK: {"S": of[0]}, SK: {"S": of[1]}}
