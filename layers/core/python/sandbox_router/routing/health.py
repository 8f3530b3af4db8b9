"""What we know of our pools' health when a route is made."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Health:
    """A snapshot. broken: pools whose credential the provider rejects, until verify passes."""

    broken: frozenset[str] = frozenset()
