"""What answers of the catalog endpoints look like: only types, as in `replies`."""

from __future__ import annotations

from typing import Any, Literal

from typing_extensions import TypedDict

from .replies import Isolation, Price


class ServingPool(TypedDict):
    """One of the operator's pools. health: null is not known to be ill."""

    id: str
    region: str | None
    geo: str | None
    isolation: Isolation
    max_ttl_seconds: int | None
    health: Literal["broken", "draining"] | None


class Lifetime(TypedDict):
    """The provider's own limit; null is unknown or none."""

    max_ttl_seconds: int | None
    acts_on_paused: bool
    extends: bool


class LabelLimits(TypedDict):
    """What tags may look like."""

    count: int
    value_length: int
    value_pattern: str | None


class UnitPrice(TypedDict):
    """List prices per hour."""

    vcpu_hour: float
    gib_hour: float
    currency: str
    as_of: str
    source: str


class ProviderKind(TypedDict):
    """A provider kind: facts with their sources, declared abilities, prices and our pools of it."""

    kind: str
    name: str
    isolation: Isolation
    idempotent_create: bool
    lifetime: Lifetime
    labels: LabelLimits
    regions: list[str] | None
    abilities: dict[str, dict[str, Any] | None]
    price: UnitPrice | None
    links: dict[str, str]
    pools: list[ServingPool]


class Providers(TypedDict):
    """All kinds the operator has pools of."""

    data: list[ProviderKind]


class SizePool(TypedDict):
    """A pool that serves a size, and its list price there."""

    pool_id: str
    provider: str
    price: Price | None


class Size(TypedDict):
    """A size that can be asked for, and the pools that serve it with any image."""

    size: str
    vcpu: float
    memory_gib: float
    pools: list[SizePool]


class Sizes(TypedDict):
    """Sizes, and the routing suffixes that may follow one."""

    data: list[Size]
    suffixes: dict[str, str]
    default: str


class Region(TypedDict):
    """A name `region` may have in a create, and the pools it matches."""

    region: str
    pools: list[str]


class Regions(TypedDict):
    """Regions and geos of the operator's pools."""

    data: list[Region]


class Prepared(TypedDict):
    """An image at one size in one pool, as the vendor calls it."""

    pool_id: str
    provider: str
    size: str
    reference: str


class Image(TypedDict):
    """A name in the image table."""

    name: str
    prepared: list[Prepared]


class Images(TypedDict):
    """The image table."""

    data: list[Image]
