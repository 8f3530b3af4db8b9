"""What we know of our pools' health when a route is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Health:
    """A snapshot. broken: pools whose credential the provider rejects, until verify passes.
    cooling_until: pools that refused a create for want of room just now, with the moment (ms) from
    which they are asked in their turn again; until then the others are asked first.
    """

    broken: frozenset[str] = frozenset()
    cooling_until: Mapping[str, int] = field(default_factory=dict)
