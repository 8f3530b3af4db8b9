"""The reference semantics of conditions: values are compared with their types."""

from __future__ import annotations

import pytest

from sandbox_router.table import Test, Value, holds, when


@pytest.mark.parametrize(
    ("have", "op", "value", "right"),
    [
        (1, "=", 1, True),
        (1, "=", True, False),
        (1, "<>", True, True),
        ("1", "<>", 1, True),
        ({"a": 1}, "=", {"a": True}, False),
        ({"a": [1, {"b": 2}]}, "=", {"a": [1, {"b": 2}]}, True),
        ([1, 2], "<>", [1, 2, 3], True),
        ([1], "=", [True], False),
        (2, ">", 1, True),
        (2, ">", True, False),
        ("b", "<=", "b", True),
        (None, "=", None, True),
    ],
)
def test_a_comparison_knows_types(have: Value, op: str, value: Value, right: bool) -> None:
    assert holds(when(Test("x", op, value)), {"x": have}) is right  # type: ignore[arg-type]
