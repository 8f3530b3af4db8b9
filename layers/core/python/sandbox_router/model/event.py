"""What the bus tells other systems: something that happened, never a request and never a secret."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

SOURCE = "sandbox-router"
"""The source of every event of ours."""


@dataclass(frozen=True)
class Event:
    """One event. `id` is the same however often it is told; `at` is in ms; `detail` is JSON."""

    id: str
    type: str
    at: int
    detail: Mapping[str, Any]
