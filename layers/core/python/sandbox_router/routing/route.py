"""The answer of routing: candidates in order, and why each other pool is not one."""

from __future__ import annotations

from dataclasses import dataclass

from ..model.sandbox import Candidate


@dataclass(frozen=True)
class Ineligible:
    """A pool that cannot serve the request, with every reason."""

    pool_id: str
    provider: str
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Route:
    """Pure function of request, pools and health."""

    candidates: tuple[Candidate, ...]
    refused: tuple[Ineligible, ...]
