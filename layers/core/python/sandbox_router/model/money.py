"""Prices and estimates in whole micro-units of a currency: no floats in the store."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

MICRO = 1_000_000
HOUR_MS = 3_600_000


@dataclass(frozen=True)
class Price:
    """A list price snapshot: micro-units per hour, where it was read and when."""

    per_hour: int
    currency: str = "USD"
    as_of: str = ""
    source: str = ""


def estimate(price: Price, running_ms: int) -> int:
    """Micro-units for `running_ms` at `price`, rounded half up; never negative."""
    return (price.per_hour * max(running_ms, 0) + HOUR_MS // 2) // HOUR_MS


def amount(micro: int) -> float:
    """Micro-units as the number a client reads."""
    return float(Decimal(micro) / MICRO)


def micro(value: str | float) -> int:
    """A decimal amount as micro-units."""
    return int((Decimal(str(value)) * MICRO).to_integral_value())
