"""Pool health as it is kept: who is out of routing until verify passes, who is asked last."""

from __future__ import annotations

from contextlib import suppress

from ..model.failure import BrokenPool, ProviderFailure, StoreBusy
from ..ports import Clock, Pools
from ..routing.health import Health
from ..store import Store

FRESH_MS = 5_000
"""How long a snapshot serves: routing reads health without a store round trip per create."""
COOL_SECONDS, COOL_MOST_SECONDS = 30, 300
"""How long a pool cools down when its provider does not say, and at most."""


class PoolHealth:
    """Health of all pools, cached per process; what this process saw itself counts at once.

    Only a pool that fails is written down, and once per cool-down: a create that succeeds writes
    nothing here. Health is advice, so a store that does not take it fails nobody's create.
    """

    def __init__(self, store: Store, pools: Pools, clock: Clock) -> None:
        self._store, self._pools, self._clock = store, pools, clock
        self._broken: frozenset[str] = frozenset()
        self._cooling: dict[str, int] = {}
        self._read_at = -FRESH_MS

    def snapshot(self) -> Health:
        """What routing goes by."""
        now = self._clock.now()
        if now - self._read_at >= FRESH_MS:
            with suppress(StoreBusy):
                self._read()
            self._read_at = now
        cooling = {pool: until for pool, until in self._cooling.copy().items() if until > now}
        return Health(self._broken, cooling)

    def _read(self) -> None:
        broken = set()
        for pool in self._pools.all():
            is_broken, cooling_until = self._store.health(pool.id)
            if is_broken:
                broken.add(pool.id)
            if cooling_until is not None:
                self._cooling[pool.id] = cooling_until
        self._broken = frozenset(broken)

    def failed(self, pool_id: str, failure: ProviderFailure, *, creating: bool) -> None:
        """The pool answered a call with this."""
        if isinstance(failure, BrokenPool):
            self._broken |= {pool_id}
            with suppress(StoreBusy):
                self._store.mark_broken(pool_id)
        elif creating and failure.cools:
            self._cool(pool_id, failure.retry_after or COOL_SECONDS)

    def _cool(self, pool_id: str, seconds: int) -> None:
        now = self._clock.now()
        if self._cooling.get(pool_id, now) > now:
            return
        self._cooling[pool_id] = until = now + min(seconds, COOL_MOST_SECONDS) * 1000
        with suppress(StoreBusy):  # the end another process wrote first is everybody's
            self._cooling[pool_id] = self._store.cool(pool_id, until)

    def heal(self) -> None:
        """Verify every broken pool; those that pass are back."""
        for pool_id in sorted(self.snapshot().broken):
            try:
                self._pools.provider(pool_id).verify()
            except ProviderFailure:
                continue
            self._store.mark_whole(pool_id)
            self._broken -= {pool_id}
