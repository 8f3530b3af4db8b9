"""Snapshots: taken of a running sandbox, kept until their end, and what a new one is made from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from ..model.failure import (
    Failure,
    Invalid,
    NotFound,
    NotRunning,
    NotRunningYet,
    Unsupported,
)
from ..model.record import Wish
from ..model.sandbox import Sandbox, State
from ..model.secret import Secret
from ..model.snapshot import Snapshot, SnapshotState
from ..model.spec import Pinned, Spec
from ..ports import Ids, Snapshots
from ..store import Entry
from .advance import Lifecycle, queue_of
from .create import CREATE_SECONDS
from .lasting import profile_of
from .once import Asked, Once, Reply
from .wishes import must_be

DAYS = 7
"""How long a snapshot is kept where nobody says."""


@dataclass(frozen=True)
class SnapshotRequest:
    """A snapshot as it was asked for. contents: `memory` or `disk`; None is what the provider
    takes. fingerprint, key: as of a create.
    """

    request_id: str
    fingerprint: bytes = field(repr=False)
    contents: str | None = None
    ttl_seconds: int = DAYS * 86_400
    key: str | None = None


@dataclass(frozen=True)
class SnapshotFilters:
    """Which snapshots a list shows; `states` None leaves out only the deleted."""

    states: frozenset[SnapshotState] | None = None
    sandbox_id: str | None = None
    created_after: int | None = None

    def take(self, snapshot: Snapshot) -> bool:
        """Does the list show this record?"""
        if self.states is None:
            shown = snapshot.state is not SnapshotState.DELETED
        else:
            shown = snapshot.state in self.states
        return shown and self.sandbox_id in (None, snapshot.sandbox_id)


class Snapshotting:
    """Takes snapshots, finds and ends them. Raises ProviderFailure classes."""

    def __init__(self, lifecycle: Lifecycle[Snapshot], ids: Ids, pepper: Secret) -> None:
        self._lifecycle, self._ids = lifecycle, ids
        self._store, self._clock = lifecycle.store, lifecycle.clock
        self._once = Once(lifecycle, ids, pepper)

    def take(
        self, tenant: str, request: SnapshotRequest, source: Callable[[], Sandbox], wait: float
    ) -> Reply:
        """201, 202, or the first answer again, whatever became of the source since."""
        fingerprint = b"snapshot\0" + request.fingerprint
        asked = Asked(tenant, request.request_id, fingerprint, request.key, wait)
        try:
            box = source()
            contents = self._contents(box, request.contents)
        except Failure:
            if (reply := self._once.again(asked)) is None:
                raise
            return reply
        ttl = request.ttl_seconds
        return self._once.begin(asked, lambda h: self._record(box, asked, contents, ttl, h))

    def _contents(self, box: Sandbox, wanted: str | None) -> str:
        """What will be captured; raises NotRunning, Unsupported, PoolRemoved."""
        must_be(box, State.RUNNING)
        assert box.server is not None
        pools, pool_id = self._lifecycle.pools, box.server.pool_id
        offered = tuple(profile_of(pools, pool_id).detail("snapshots", "contents") or ())
        if not offered or not isinstance(pools.provider(pool_id), Snapshots):
            raise Unsupported("this provider takes no snapshots")
        if wanted is not None and wanted not in offered:
            reason = f"this provider captures {' or '.join(offered)}"
            raise Unsupported(reason, fields=(("contents", reason),))
        return wanted or str(offered[0])

    def stops(self, box: Sandbox) -> bool:
        """Does taking a snapshot of it stop it?"""
        if box.server is None:
            return False
        profile = self._lifecycle.pools.pool(box.server.pool_id).profile
        return bool(profile.detail("snapshots", "interrupts") == "stop")

    def _record(
        self, box: Sandbox, asked: Asked, contents: str, ttl_seconds: int, request_hash: str
    ) -> Snapshot:
        """The record as it begins."""
        now, server = self._clock.now(), box.server
        assert server is not None
        profile = self._lifecycle.pools.pool(server.pool_id).profile
        return Snapshot(
            id=self._ids.snapshot(),
            tenant=asked.tenant,
            created_at=now,
            expires_at=now + ttl_seconds * 1000,
            create_until=now + min(ttl_seconds, CREATE_SECONDS) * 1000,
            request_id=asked.request_id,
            key_hash=asked.key_hash,
            request_hash=request_hash,
            due_at=now,
            sandbox_id=box.id,
            instance_id=server.instance_id or "",
            pool_id=server.pool_id,
            provider=server.provider,
            contents=contents,
            interrupts=profile.detail("snapshots", "interrupts"),
            shape=box.candidate(server.pool_id).shape,
        )

    def get(self, tenant: str, snapshot_id: str) -> Snapshot:
        """A tenant's own snapshot; raises NotFound."""
        return self._lifecycle.owned(tenant, snapshot_id)

    def destroy(self, tenant: str, snapshot_id: str) -> Snapshot:
        """Wish it gone; the record after what could be done at once."""
        snapshot = self.get(tenant, snapshot_id)
        if snapshot.over:
            return snapshot
        if snapshot.wish_destroy is None:
            wish = Wish(self._ids.nonce(), self._clock.now(), "client")
            entry = Entry(wish.at, "wish.destroy", str(snapshot.state))
            self._store.wish(snapshot, "wish_destroy", wish, entry)
        work = self._lifecycle.advance(snapshot_id)
        return snapshot if work is None else work.stored

    def doubted(self, tenant: str, snapshot_id: str) -> None:
        """Nothing could be made of it: have it looked at, in the background."""
        snapshot = self.get(tenant, snapshot_id)
        if snapshot.state is SnapshotState.READY:
            wish = Wish(self._ids.nonce(), self._clock.now(), "look")
            entry = Entry(wish.at, "wish.look", str(snapshot.state))
            self._store.wish(snapshot, "wish_look", wish, entry)
            self._lifecycle.queue.send(queue_of(snapshot), snapshot.id)

    def pinned(self, tenant: str, spec: Spec) -> Spec:
        """The spec with what its snapshot is made from, if it names one; raises Invalid, NotRunning
        where that is nothing to make a sandbox from, PoolRemoved where nobody could be asked.
        """
        if spec.snapshot_id is None:
            return spec
        try:
            snapshot = self.get(tenant, spec.snapshot_id)
        except NotFound:
            raise Invalid(fields=(("snapshot_id", "is not one of yours"),)) from None
        if snapshot.beginning:
            raise NotRunningYet("the snapshot is creating", retry_after=1)
        if snapshot.state is not SnapshotState.READY:
            raise NotRunning(f"the snapshot is {snapshot.state}")
        if self._clock.now() >= snapshot.expires_at:
            raise NotRunning("the snapshot has expired")
        profile_of(self._lifecycle.pools, snapshot.pool_id)
        shape = spec.shape if spec.sized else snapshot.shape
        pinned = Pinned(snapshot.pool_id, snapshot.capture_id, snapshot.shape)
        return replace(spec, pinned=pinned, shape=shape)
