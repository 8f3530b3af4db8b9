"""Items to DynamoDB's attribute values and back."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from sandbox_router.model.failure import Internal
from sandbox_router.table import Item, Value

Attribute = Mapping[str, Any]
"""`{"S": text}`, `{"N": digits}`, `{"B": bytes}`, `{"BOOL": ...}`, `{"NULL": True}`, `{"L": [...]}`
or `{"M": {...}}`."""


def encode(value: Value) -> dict[str, Any]:
    """A value as an attribute value; TypeError for what is none (drivers check first)."""
    match value:
        case None:
            return {"NULL": True}
        case bool():
            return {"BOOL": value}
        case int():
            return {"N": str(value)}
        case str():
            return {"S": value}
        case bytes():
            return {"B": value}
        case list():
            return {"L": [encode(each) for each in value]}
        case dict():
            return {"M": encoded(value)}
    raise TypeError(f"{type(value).__name__} is no value of an item")


def encoded(item: Item) -> dict[str, dict[str, Any]]:
    """An item's attributes, each encoded."""
    return {name: encode(value) for name, value in item.items()}


def decode(attribute: Attribute) -> Value:
    """The value of an attribute; raises Internal for a kind this program never writes.

    Binary is bytes out of a client and base64 text in a Lambda event.
    """
    ((kind, inner),) = attribute.items()
    match kind:
        case "S" | "BOOL":
            return inner
        case "N":
            return _integer(inner)
        case "B":
            return bytes(inner) if not isinstance(inner, str) else base64.b64decode(inner)
        case "NULL":
            return None
        case "L":
            return [decode(each) for each in inner]
        case "M":
            return decoded(inner)
    raise Internal


def decoded(attributes: Mapping[str, Attribute]) -> dict[str, Value]:
    """An item out of its encoded attributes."""
    return {name: decode(attribute) for name, attribute in attributes.items()}


def _integer(digits: str) -> int:
    if digits.lstrip("-").isdigit():
        return int(digits)
    number = Decimal(digits)  # somebody else's spelling, such as 1E+2
    if number != number.to_integral_value():
        raise Internal
    return int(number)
