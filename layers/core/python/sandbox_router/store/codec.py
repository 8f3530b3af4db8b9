"""Dataclasses to items and back: the one place that knows how a record is spelled in storage.

None is left out, enums are their values, tuples are lists. Unknown attributes are ignored and
missing ones take their defaults, so that an older reader meets a newer record unharmed.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")


def encode(value: Any) -> Any:
    """`value` in the storage language."""
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value) and not isinstance(value, type):
        pairs = ((f.name, getattr(value, f.name)) for f in fields(value))
        return {name: encode(inner) for name, inner in pairs if inner is not None}
    if isinstance(value, Mapping):
        return {key: encode(inner) for key, inner in value.items()}
    if isinstance(value, tuple | list | frozenset):
        return [encode(inner) for inner in value]
    return value


def decode(cls: type[T], data: Mapping[str, Any]) -> T:
    """An instance of `cls`; raises KeyError when a required attribute is missing."""
    values = {}
    for f, hint in _shape(cast("Any", cls)):
        if f.name in data:
            values[f.name] = _decode(hint, data[f.name])
        elif f.default is MISSING and f.default_factory is MISSING:
            if not _optional(hint):
                raise KeyError(f.name)
            values[f.name] = None
    return cls(**values)


@lru_cache(maxsize=64)
def _shape(cls: Any) -> tuple[tuple[Field[Any], Any], ...]:
    hints = get_type_hints(cls)
    return tuple((f, hints[f.name]) for f in fields(cls))


def _optional(hint: Any) -> bool:
    return get_origin(hint) in (Union, types.UnionType) and type(None) in get_args(hint)


def _decode(hint: Any, value: Any) -> Any:
    if _optional(hint):
        if value is None:
            return None
        (hint,) = (arg for arg in get_args(hint) if arg is not type(None))
    origin = get_origin(hint)
    if origin is tuple:
        return tuple(_decode(get_args(hint)[0], inner) for inner in value)
    if origin is not None and isinstance(value, Mapping):
        return {key: _decode(get_args(hint)[1], inner) for key, inner in value.items()}
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint(value)
    if is_dataclass(hint) and isinstance(value, Mapping):
        return decode(cast("type[Any]", hint), value)
    return value
