"""What a client asks for, once, for every provider."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from .secret import Secret
from .size import Shape, Sort


class Isolation(StrEnum):
    """How far a workload is kept from its neighbours, weakest first."""

    PROCESS = "process"
    CONTAINER = "container"
    GVISOR = "gvisor"
    MICROVM = "microvm"

    def satisfies(self, least: Isolation | None) -> bool:
        """At least as strong as `least`?"""
        ranks = list(Isolation)
        return least is None or ranks.index(self) >= ranks.index(least)


@dataclass(frozen=True)
class Preferences:
    """The caller's provider preferences; names after the habit of LLM routers."""

    order: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    allow_fallbacks: bool = True
    sort: Sort | None = None
    max_price_per_hour: int | None = None  # micro-units
    require: tuple[str, ...] = ()


@dataclass(frozen=True)
class Pinned:
    """Where a snapshot can be made a sandbox again: its pool, and what it is called there."""

    pool_id: str
    reference: str
    shape: Shape


@dataclass(frozen=True)
class Spec:
    """A create request without its secrets; `env_names` lists what `Cargo` holds. pinned: what
    `snapshot_id` names, looked up. sized: did the client say a size? A snapshot brings its own.
    """

    shape: Shape
    image: str = "default"
    snapshot_id: str | None = None
    pinned: Pinned | None = None
    sized: bool = True
    ttl_seconds: int = 3600
    region: str | None = None
    isolation: Isolation | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    env_names: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()
    idle_seconds: int | None = None
    prefer: Preferences = field(default_factory=Preferences)


@dataclass(frozen=True)
class Cargo:
    """The secrets of a create request: in memory, or sealed, never stored in clear."""

    env: Mapping[str, Secret] = field(default_factory=dict)
