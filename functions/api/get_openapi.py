"""GET /v1/openapi.json."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from functions.edge.api import operation
from functions.edge.call import Answer, Call

DOCUMENT = Path(__file__).resolve().parents[2] / "infra" / "openapi.json"


@cache
def _text() -> str:
    return DOCUMENT.read_text(encoding="utf-8")


@operation({200: dict})
def handler(call: Call) -> Answer:
    """The contract, as generated from the handlers."""
    return Answer(200, _text())
