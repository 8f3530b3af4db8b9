"""JSON as the API takes it: strict, bounded, one value for one text.

Checked before any model sees it: the standard parser keeps the last of two equal keys, makes
infinities, and lets lone surrogates and NUL into strings: each breaks something further in.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Mapping
from typing import Any, NoReturn

from sandbox_router.model.failure import Invalid, TooLarge

DEPTH = 32
LARGEST = 2**53 - 1
"""Integers beyond it are not the same in every JSON reader."""


def raw_body(event: Mapping[str, Any], limit: int) -> bytes:
    """The body's bytes out of a proxy event; raises TooLarge, Invalid for broken base64."""
    text = event.get("body") or ""
    encoded = bool(event.get("isBase64Encoded"))
    # Base64 is longer than what it says: look before decoding.
    if len(text) > (limit * 4 // 3 + 4 if encoded else limit):
        raise _over(limit)
    try:
        body = base64.b64decode(text, validate=True) if encoded else text.encode()
    except (binascii.Error, ValueError) as error:
        raise Invalid("The body cannot be decoded") from error
    if len(body) > limit:
        raise _over(limit)
    return body


def _over(limit: int) -> TooLarge:
    return TooLarge(f"The body is over {limit} bytes", fields=(("body", f"at most {limit} bytes"),))


def parse(body: bytes) -> Any:
    """The value of a JSON text; raises Invalid. Whole numbers become ints however written."""
    try:
        value = json.loads(
            body.decode("utf-8"),
            object_pairs_hook=_object,
            parse_constant=_constant,
            parse_float=_number,
        )
    except UnicodeDecodeError as error:
        raise _invalid("must be UTF-8") from error
    except RecursionError as error:
        raise _invalid(f"must not be nested deeper than {DEPTH}") from error
    except ValueError as error:  # JSONDecodeError, and integers too long to read
        raise _invalid("must be valid JSON") from error
    _check(value, 1)
    return value


def _invalid(reason: str) -> Invalid:
    return Invalid(fields=(("body", reason),))


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _invalid("must not have the same key twice")
    return found


def _constant(name: str) -> NoReturn:
    raise _invalid("must not have NaN or infinite numbers")


def _number(text: str) -> int | float:
    """2.0 is 2: the same request, however the client's language writes numbers."""
    value = float(text)
    if not math.isfinite(value):
        raise _invalid("must not have NaN or infinite numbers")
    return int(value) if value.is_integer() and abs(value) <= LARGEST else value


def _check(value: Any, depth: int) -> None:
    if isinstance(value, str):
        _check_text(value)
    elif isinstance(value, int):
        if abs(value) > LARGEST:
            raise _invalid(f"must not have integers beyond {LARGEST}")
    elif isinstance(value, dict | list):
        if depth > DEPTH:
            raise _invalid(f"must not be nested deeper than {DEPTH}")
        if isinstance(value, dict):
            for key in value:
                _check_text(key)
            value = value.values()
        for inner in value:
            _check(inner, depth + 1)


def _check_text(text: str) -> None:
    if "\0" in text:
        raise _invalid("must not have NUL characters")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise _invalid("must not have lone surrogates") from error


def compact(value: Any) -> str:
    """One value as one text: sorted keys, no spaces, whole numbers without a fraction."""
    return json.dumps(
        _whole(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )


def _whole(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _whole(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_whole(inner) for inner in value]
    return value


def render(value: Any) -> str:
    """An answer's text."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
