"""Raw values into models; what is wrong becomes field errors with paths, never with values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, get_origin

from pydantic import BaseModel, ValidationError

from sandbox_router.model.failure import Invalid, Unsupported

from .bodies import Body
from .params import Params

ERRORS = 20
_REASONS = {"extra_forbidden": "unknown field", "missing": "required"}


M = TypeVar("M", bound=BaseModel)
B = TypeVar("B", bound=Body)
P = TypeVar("P", bound=Params)


def body_of(model: type[B], value: Any) -> B:
    """A body; raises Invalid, then Unsupported for fields whose part is not built."""
    if not isinstance(value, dict):
        raise Invalid(fields=(("body", "must be an object"),))
    later = {name: value[name] for name in model.LATER if name in value}
    found = _validated(model, {k: v for k, v in value.items() if k not in later})
    asked = [name for name, wish in later.items() if not _harmless(wish, model.LATER[name])]
    if asked:
        raise Unsupported(
            f"Not available in this version: {', '.join(asked)}",
            fields=tuple((name, "not available in this version") for name in asked),
        )
    return found


def _harmless(wish: Any, idle: Sequence[Any]) -> bool:
    return any(type(wish) is type(value) and wish == value for value in idle)


def query_of(model: type[P], given: Mapping[str, Sequence[str]]) -> P:
    """Query parameters; a scalar may be given once only."""
    many = {n for n, f in model.model_fields.items() if get_origin(f.annotation) is list}
    twice = [name for name, values in given.items() if name not in many and len(values) > 1]
    if twice:
        raise Invalid(fields=tuple((name[:200], "given more than once") for name in twice))
    return _validated(model, {n: list(v) if n in many else v[0] for n, v in given.items()})


def headers_of(model: type[P], given: Mapping[str, Sequence[str]]) -> P:
    """The model's headers out of all (by lower-case name); others are not ours to refuse."""
    found: dict[str, str] = {}
    for field in model.model_fields.values():
        name = field.alias or ""
        values = given.get(name.lower(), ())
        if len(values) > 1 and name != "Prefer":
            raise Invalid(fields=((name, "given more than once"),))
        if values:
            found[name] = ", ".join(values)
    return _validated(model, found)


def _validated(model: type[M], value: dict[str, Any]) -> M:
    try:
        found = model.model_validate(value)
    except ValidationError as error:
        errors = error.errors(include_url=False, include_context=False, include_input=False)
        raise Invalid(fields=tuple(_field(e) for e in errors[:ERRORS])) from None
    assert isinstance(found, Body | Params)
    if complaints := tuple(found.complaints()):
        raise Invalid(fields=complaints[:ERRORS])
    return found


def _field(error: Any) -> tuple[str, str]:
    reason = _REASONS.get(error["type"]) or error["msg"].removeprefix("Value error, ")
    return _path(error["loc"]), reason


def _path(location: Sequence[str | int]) -> str:
    """`a.b[0]`; a key pydantic names comes from the client and may be of any length."""
    path = ""
    for part in location:
        if part != "[key]":
            path += f"[{part}]" if isinstance(part, int) else f".{part[:100]}"
    return path.lstrip(".")[:300] or "body"
