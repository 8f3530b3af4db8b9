"""Pool health as it is kept: which pools are out of routing until their credential verifies."""

from __future__ import annotations

from ..model.failure import ProviderFailure
from ..ports import Clock, Pools
from ..routing.health import Health
from ..store import Store

FRESH_MS = 5_000
"""How long a snapshot serves: routing reads health without a store round trip per create."""


class PoolHealth:
    """Health of all pools, cached per process."""

    def __init__(self, store: Store, pools: Pools, clock: Clock) -> None:
        self._store, self._pools, self._clock = store, pools, clock
        self._snapshot, self._read_at = Health(), -FRESH_MS

    def snapshot(self) -> Health:
        """What routing goes by."""
        now = self._clock.now()
        if now - self._read_at >= FRESH_MS:
            ids = (pool.id for pool in self._pools.all())
            broken = frozenset(i for i in ids if self._store.get((f"POOL#{i}", "HEALTH")))
            self._snapshot, self._read_at = Health(broken), now
        return self._snapshot

    def mark_broken(self, pool_id: str) -> None:
        """The provider rejected the pool's credential: out of routing."""
        item = {"broken_at": self._clock.now()}
        self._store.put((f"POOL#{pool_id}", "HEALTH"), item)
        self._snapshot = Health(self._snapshot.broken | {pool_id})

    def heal(self) -> None:
        """Verify every broken pool; those that pass are back."""
        for pool_id in sorted(self.snapshot().broken):
            try:
                self._pools.provider(pool_id).verify()
            except ProviderFailure:
                continue
            self._store.drop((f"POOL#{pool_id}", "HEALTH"))
            self._snapshot = Health(self._snapshot.broken - {pool_id})
