"""Dataclasses to items and back: the one place that knows how a record is spelled in storage.

None is left out, enums are their values, tuples are lists. Unknown attributes are ignored and
missing ones take their defaults, so that an older reader meets a newer record unharmed. What a
class needs is worked out once, from its annotations.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")
Convert = Callable[[Any], Any]


def encode(value: Any) -> Any:
    """`value` in the storage language."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if is_dataclass(kind):
        pairs = ((name, getattr(value, name)) for name in names(kind))
        return {name: encode(inner) for name, inner in pairs if inner is not None}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {key: encode(inner) for key, inner in value.items()}
    if isinstance(value, tuple | list | frozenset):
        return [encode(inner) for inner in value]
    return value


def decode(cls: type[T], data: Mapping[str, Any]) -> T:
    """An instance of `cls`; raises KeyError when a required attribute is missing."""
    values = {}
    for name, required, convert in _shape(cast("Any", cls)):
        if name in data:
            value = data[name]
            values[name] = value if convert is None or value is None else convert(value)
        elif required:
            raise KeyError(name)
        elif required is None:
            values[name] = None
    return cls(**values)


_PLAIN = frozenset({str, int, bool, bytes, float, types.NoneType})


@lru_cache(maxsize=64)
def names(cls: Any) -> tuple[str, ...]:
    """The attributes of a class."""
    return tuple(f.name for f in fields(cls))


@lru_cache(maxsize=64)
def _shape(cls: Any) -> tuple[tuple[str, bool | None, Convert | None], ...]:
    """Per field: its name, whether it must be there (None: absent means None), its conversion."""
    hints = get_type_hints(cls)
    return tuple(
        (f.name, _required(f, hints[f.name]), _convert(hints[f.name])) for f in fields(cls)
    )


def _required(f: Field[Any], hint: Any) -> bool | None:
    if f.default is not MISSING or f.default_factory is not MISSING:
        return False
    return None if _optional(hint) else True


def _optional(hint: Any) -> bool:
    return get_origin(hint) in (Union, types.UnionType) and type(None) in get_args(hint)


def _convert(hint: Any) -> Convert | None:
    """How a stored value becomes one of this annotation; None: it already is."""
    if _optional(hint):
        (hint,) = (arg for arg in get_args(hint) if arg is not types.NoneType)
    origin, args = get_origin(hint), get_args(hint)
    if origin is tuple:
        return _many(_convert(args[0]))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _mapped(_convert(args[1]))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint
    if is_dataclass(hint):
        return lambda value: decode(cast("type[Any]", hint), value)
    return None


def _many(inner: Convert | None) -> Convert:
    return tuple if inner is None else lambda values: tuple(map(inner, values))


def _mapped(inner: Convert | None) -> Convert:
    if inner is None:
        return dict
    return lambda values: {key: inner(value) for key, value in values.items()}
