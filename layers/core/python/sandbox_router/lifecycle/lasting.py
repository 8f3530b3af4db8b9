"""Pools last as long as what is in them: one that was taken out of the configuration is stood in
for, so that nobody answers there and everything else goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn, cast

from ..model.capability import LabelLimits, Lifetime, Naming, Profile
from ..model.failure import NotFound, PoolRemoved
from ..model.pool import Pool
from ..model.spec import Isolation
from ..ports import Pools, Provider

_UNKNOWN = Profile(
    kind="unknown",
    name="A pool that was removed",
    naming=Naming(idempotent=False),
    lifetime=Lifetime(max_ttl=None),
    labels=LabelLimits(0, 0),
    isolation=Isolation.PROCESS,
    abilities={},
    hosts=(),
)


def profile_of(pools: Pools, pool_id: str) -> Profile:
    """What a pool can do; raises PoolRemoved when nobody knows that any more."""
    profile = pools.pool(pool_id).profile
    if profile is _UNKNOWN:
        raise PoolRemoved
    return profile


def _refused(*_args: object, **_named: object) -> NoReturn:
    raise PoolRemoved


class Nobody:
    """A provider of which nothing is known but that it cannot be asked: it has every ability, and
    each call raises PoolRemoved. The methods are there, since a protocol counts no other.
    """

    verify = create = find = get = destroy = instances = _refused
    extend = pause = resume = run = open_port = close_port = _refused
    read_file = write_file = move_file = remove_file = list_directory = _refused
    capture = find_capture = get_capture = destroy_capture = captures = _refused


@dataclass(frozen=True)
class LastingPools:
    """`ports.Pools` for what lives in pools: raises no NotFound."""

    configured: Pools

    def all(self) -> Sequence[Pool]:
        """Every pool there is now."""
        return self.configured.all()

    def pool(self, pool_id: str) -> Pool:
        """The pool, or what stands for it."""
        try:
            return self.configured.pool(pool_id)
        except NotFound:
            return Pool(pool_id, _UNKNOWN, position=0, draining=True)

    def provider(self, pool_id: str) -> Provider:
        """The account behind the pool, or nobody."""
        try:
            return self.configured.provider(pool_id)
        except NotFound:
            return cast("Provider", Nobody())
