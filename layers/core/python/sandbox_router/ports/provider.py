"""One account at a provider, and the operator's pools of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from ..model.pool import Pool
from ..model.secret import Secret
from ..model.size import Shape
from ..model.spec import Cargo

InstanceState = Literal["starting", "running", "pausing", "paused", "stopped", "failed"]


@dataclass(frozen=True)
class Instance:
    """The provider's side: identity, truthful state, retained tags. Times in ms.

    access: names and secrets later calls need (data host, tokens); kept sealed by the store.
    """

    id: str
    state: InstanceState
    tags: Mapping[str, str] = field(default_factory=dict)
    shape: Shape | None = None
    created_at: int | None = None
    ends_at: int | None = None
    access: Mapping[str, Secret] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Order:
    """Everything a provider needs to make one instance. `tags` are identity tags and labels
    together.

    lifetime_seconds: the provider's own limit to set; the same at every repeat of one identity.
    from_capture: the reference is a capture's id, not an image's.
    """

    identity: str
    reference: str
    shape: Shape
    tags: Mapping[str, str]
    lifetime_seconds: int
    cargo: Cargo = field(default_factory=Cargo, repr=False)
    from_capture: bool = False


@dataclass(frozen=True)
class Ref:
    """A live instance and what calls to it need."""

    instance_id: str
    access: Mapping[str, Secret] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class InstancePage:
    """One page of a provider's list; `cursor` None at the end."""

    instances: tuple[Instance, ...]
    cursor: str | None


class Provider(Protocol):
    """One account at one provider. Raises ProviderFailure classes only; `timeout` is in seconds,
    in total.
    """

    def verify(self) -> None:
        """A cheap authenticated read that changes nothing; raises BrokenPool, Permission,
        RateLimited, Outage.
        """
        ...

    def create(self, order: Order, *, timeout: float) -> Instance:
        """Make an instance under the order's identity; a repeat finds the first where the profile
        says so.
        """
        ...

    def find(self, tags: Mapping[str, str]) -> Instance | None:
        """The instance retaining exactly these identity tags, if the provider shows one now."""
        ...

    def get(self, instance_id: str) -> Instance | None:
        """Its truthful state; None means the provider says it is gone."""
        ...

    def destroy(self, instance_id: str) -> None:
        """Ask for its end, dependents included; gone already is success."""
        ...

    def instances(self, cursor: str | None) -> InstancePage:
        """One page of all the account's instances that carry our tags."""
        ...


class Pools(Protocol):
    """The operator's pools and the providers behind them."""

    def all(self) -> Sequence[Pool]:
        """Every pool, in the operator's order."""
        ...

    def pool(self, pool_id: str) -> Pool:
        """One pool; raises NotFound."""
        ...

    def provider(self, pool_id: str) -> Provider:
        """The account behind the pool; raises NotFound."""
        ...
