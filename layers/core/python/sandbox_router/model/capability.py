"""What a provider can do and within which limits: its `profile.json` as a value.

`None` means unknown. A claim that is not in the profile is not made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .money import Price, micro
from .size import Shape
from .spec import Isolation


@dataclass(frozen=True)
class Naming:
    """How an attempt's identity finds its instance again. Times in seconds.

    idempotent: a repeated create under one identity answers with the same instance.
    list_lag: how long a list or look-up may be behind.
    window: how long after the call an instance may still appear.
    settle: how long an unknown create is settled before the next candidate is asked.
    """

    idempotent: bool
    list_lag: int = 5
    window: int = 600
    settle: int = 20


@dataclass(frozen=True)
class Lifetime:
    """The provider's own limit on an instance's life, in seconds.

    max_ttl, min_ttl: the most and the least it takes at create.
    """

    max_ttl: int | None
    margin: int = 60
    min_ttl: int = 1
    acts_on_paused: bool = False
    extends: bool = False


@dataclass(frozen=True)
class LabelLimits:
    """What integration tags and customer labels may look like at the provider.

    reserved: how the keys begin that the provider keeps for itself.
    """

    count: int
    value_length: int
    value_pattern: str | None = None
    reserved: tuple[str, ...] = ()


Range = tuple[int, int | None]
"""From the first to the second, both included; None is no known end."""


@dataclass(frozen=True)
class Sizes:
    """Any image at any shape within these ranges, exactly as asked; no disk and no GPU."""

    milli_vcpu: Range
    memory_mib: Range

    def hold(self, shape: Shape) -> bool:
        """Can an instance have exactly this shape?"""
        asked = ((shape.milli_vcpu, self.milli_vcpu), (shape.memory_mib, self.memory_mib))
        within = all(low <= n and (high is None or n <= high) for n, (low, high) in asked)
        return within and shape.disk_mib is None and shape.gpu is None


@dataclass(frozen=True)
class HostRule:
    """A host pattern (`*` is one label) and which credential it may get: `account` or `sandbox`."""

    pattern: str
    credential: str


@dataclass(frozen=True)
class Timeouts:
    """Seconds one call may take, connection included."""

    create: float = 20.0
    call: float = 10.0


@dataclass(frozen=True)
class Profile:
    """One provider kind: facts, abilities and limits. `abilities` maps a name to its details, or
    to None. `sizes` None: an image decides its size, and only prepared sizes exist.
    """

    kind: str
    name: str
    naming: Naming
    lifetime: Lifetime
    labels: LabelLimits
    isolation: Isolation
    abilities: Mapping[str, Mapping[str, Any] | None]
    hosts: tuple[HostRule, ...]
    timeouts: Timeouts = field(default_factory=Timeouts)
    sizes: Sizes | None = None
    regions: tuple[str, ...] | None = None
    price: UnitPrice | None = None
    links: Mapping[str, str] = field(default_factory=dict)

    def can(self, ability: str) -> bool:
        """Is the ability declared?"""
        return self.abilities.get(ability) is not None

    def detail(self, ability: str, key: str) -> Any:
        """One detail of a declared ability, or None."""
        return (self.abilities.get(ability) or {}).get(key)


@dataclass(frozen=True)
class UnitPrice:
    """List prices per vCPU-hour and GiB-hour in micro-units, with their source."""

    vcpu_hour: int
    gib_hour: int
    currency: str
    as_of: str
    source: str

    def of(self, shape: Shape) -> Price:
        """The hourly price of a shape."""
        per_hour = (shape.milli_vcpu * self.vcpu_hour) // 1000 + (
            shape.memory_mib * self.gib_hour
        ) // 1024
        return Price(per_hour, self.currency, self.as_of, self.source)


def read(data: Mapping[str, Any]) -> Profile:
    """A profile from its JSON document; raises KeyError, TypeError or ValueError on a malformed
    one.
    """
    price, labels = data.get("price"), data["labels"]
    return Profile(
        kind=data["kind"],
        name=data["name"],
        naming=Naming(**data["naming"]),
        lifetime=Lifetime(**data["lifetime"]),
        labels=LabelLimits(**{**labels, "reserved": tuple(labels.get("reserved", ()))}),
        isolation=Isolation(data["isolation"]),
        abilities=data["abilities"],
        hosts=tuple(HostRule(**rule) for rule in data["hosts"]),
        timeouts=Timeouts(**data.get("timeouts", {})),
        sizes=_sizes(data.get("sizes")),
        regions=None if data.get("regions") is None else tuple(data["regions"]),
        price=None
        if price is None
        else UnitPrice(
            micro(price["vcpu_hour"]),
            micro(price["gib_hour"]),
            price["currency"],
            price["as_of"],
            price["source"],
        ),
        links=data.get("links", {}),
    )


def _sizes(data: Mapping[str, Any] | None) -> Sizes | None:
    if data is None:
        return None
    if data["rule"] != "range":
        raise ValueError("sizes.rule")
    (least_cpu, most_cpu), (least, most) = data["milli_vcpu"], data["memory_mib"]
    return Sizes((least_cpu, most_cpu), (least, most))
