"""A pool: one account at a provider in one region, with its plan, and the images prepared in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .capability import Profile
from .money import Price
from .size import Shape
from .spec import Isolation


@dataclass(frozen=True)
class Prepared:
    """An image at one shape, as the provider calls it."""

    reference: str
    shape: Shape


@dataclass(frozen=True)
class Pool:
    """What routing knows of a pool. `images`: name in the image table -> what is prepared here.
    `any_size`: name in the image table -> the vendor's reference, at any shape the kind's `sizes`
    hold.

    `position` is the operator's order, `max_ttl` the account's plan limit in seconds, `isolation`
    what this
    account really gives (a plan may give less than the profile).
    """

    id: str
    profile: Profile
    position: int
    region: str | None = None
    geo: str | None = None
    max_ttl: int | None = None
    isolation: Isolation = Isolation.PROCESS
    images: Mapping[str, tuple[Prepared, ...]] = field(default_factory=dict)
    any_size: Mapping[str, str] = field(default_factory=dict)
    draining: bool = False

    @property
    def kind(self) -> str:
        """The provider's kind."""
        return self.profile.kind

    @property
    def ttl_cap(self) -> int | None:
        """The longest life this pool allows, in seconds; None when unknown or unlimited."""
        caps = [cap for cap in (self.max_ttl, self.profile.lifetime.max_ttl) if cap is not None]
        return min(caps, default=None)

    def price(self, shape: Shape) -> Price | None:
        """The list price of a shape here, when known."""
        return None if self.profile.price is None else self.profile.price.of(shape)
