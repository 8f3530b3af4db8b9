"""The facade: use cases in, results out. Every call names the tenant it is for."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from .lifecycle.advance import WAKE_MS, Lifecycle
from .lifecycle.captures import Captures
from .lifecycle.create import CreateRequest, Creates
from .lifecycle.health import PoolHealth
from .lifecycle.lasting import LastingPools
from .lifecycle.listing import Filters, Listing
from .lifecycle.once import Reply
from .lifecycle.sandbox_life import SandboxLife
from .lifecycle.snapshot_life import SnapshotLife
from .lifecycle.snapshots import SnapshotFilters, SnapshotRequest, Snapshotting
from .lifecycle.wishes import Wishes
from .model.failure import CaptureGone, Failure, Gone
from .model.pool import Pool
from .model.principal import Principal
from .model.record import Record
from .model.sandbox import Sandbox, State
from .model.secret import Secret
from .model.snapshot import Snapshot, SnapshotState
from .model.spec import Spec
from .ports import (
    Clock,
    Command,
    Endpoint,
    Entry,
    Exit,
    Ids,
    Objects,
    Output,
    Pools,
    Queue,
    Table,
    Vault,
)
from .reconcile.pool import Reconcile, Report
from .routing.order import route
from .routing.route import Route
from .session.live import Session
from .session.transfers import Download, Transfers, Upload
from .store import SHARDS, Store, Unreadable, api_key, kind_of

T = TypeVar("T")
BEGINNINGS = frozenset({State.STARTING.value, SnapshotState.CREATING.value})


class Router:
    """One deployment's use cases over its ports."""

    def __init__(  # noqa: PLR0913 - the ports, once
        self,
        *,
        table: Table,
        queue: Queue,
        pools: Pools,
        vault: Vault,
        objects: Objects,
        clock: Clock,
        ids: Ids,
        deployment: str,
        pepper: Secret,
    ) -> None:
        self.clock, self._ids, self._pools, self._queue = clock, ids, pools, queue
        self._pepper, lasting = pepper, LastingPools(pools)
        self._store = Store(table, clock, ids)
        self._health = PoolHealth(self._store, pools, clock)
        life = SandboxLife(lasting, vault, clock, deployment)
        self._boxes = boxes = Lifecycle(life, self._store, queue, self._health)
        of_snapshots = SnapshotLife(lasting, vault, clock, deployment)
        shots = Lifecycle(of_snapshots, self._store, queue, self._health)
        self._lives: Mapping[type[Record], Lifecycle[Any]] = {Sandbox: boxes, Snapshot: shots}
        self._creates = Creates(boxes, ids, pepper)
        self._wishes = Wishes(boxes, lasting, ids)
        self._snapshots = Snapshotting(shots, ids, pepper)
        self._session = Session(lasting, vault)
        self._transfers = Transfers(self._session, objects, clock, ids, pepper, self._using)
        self._listing = Listing(self._store, clock, pepper)
        captures = partial(Captures, deployment=deployment)
        self._reconcile = Reconcile(
            self._store, pools, clock, ids, deployment, self.advance, captures
        )

    def create(self, tenant: str, request: CreateRequest, *, wait_seconds: float) -> Reply:
        """Start a sandbox, once per key."""
        routed = partial(self._routed, tenant, request.spec)
        reply = self._creates.create(tenant, request, routed, wait_seconds)
        if not reply.replayed:
            self._doubt(tenant, request.spec, reply.status)
        return reply

    def route(self, tenant: str, spec: Spec) -> Route:
        """Which pools would be asked, in order, and why each other would not."""
        return self._routed(tenant, spec)[1]

    def _routed(self, tenant: str, spec: Spec) -> tuple[Spec, Route]:
        pinned = self._snapshots.pinned(tenant, spec)
        return pinned, route(pinned, self._pools.all(), self._health.snapshot())

    def get(self, tenant: str, sandbox_id: str, *, refresh: bool = False) -> Sandbox:
        """The record; with `refresh` after a look at the provider."""
        box = self._seen(tenant, sandbox_id)
        return self._wishes.look(box) if refresh else box

    def list(
        self, tenant: str, filters: Filters, *, limit: int, cursor: str | None
    ) -> tuple[list[Sandbox], str | None]:
        """One page, newest first, and the cursor of the next; raises Invalid on a bad cursor."""
        return self._listing.page(Sandbox, tenant, filters, limit=limit, cursor=cursor)

    def extend(self, tenant: str, sandbox_id: str, ttl_seconds: int, *, shorten: bool) -> Sandbox:
        """Move the deadline to `ttl_seconds` from now."""
        return self._wishes.extend(self._seen(tenant, sandbox_id), ttl_seconds, shorten=shorten)

    def relabel(self, tenant: str, sandbox_id: str, labels: Mapping[str, str]) -> Sandbox:
        """Replace the labels."""
        return self._wishes.relabel(self._seen(tenant, sandbox_id), labels)

    def idle(self, tenant: str, sandbox_id: str, seconds: int) -> Sandbox:
        """Let it end when it is unused for so many seconds, from now on."""
        return self._wishes.idle(self._seen(tenant, sandbox_id), seconds)

    def destroy(self, tenant: str, sandbox_id: str) -> Sandbox:
        """Wish it gone; the record after what could be done at once."""
        return self._wishes.destroy(self._seen(tenant, sandbox_id))

    def pause(self, tenant: str, sandbox_id: str, keep: str = "memory") -> Sandbox:
        """Pause, keeping memory or disk."""
        return self._wishes.pause(self._seen(tenant, sandbox_id), keep)

    def resume(self, tenant: str, sandbox_id: str) -> Sandbox:
        """Resume with what was kept."""
        return self._wishes.resume(self._seen(tenant, sandbox_id))

    def take_snapshot(
        self, tenant: str, sandbox_id: str, request: SnapshotRequest, *, wait_seconds: float
    ) -> Reply:
        """Begin a snapshot of a running sandbox, once per key. Where taking it stops the sandbox,
        or may have, the sandbox is looked at.
        """
        source = partial(self._seen, tenant, sandbox_id)
        reply = self._snapshots.take(tenant, request, source, wait_seconds)
        if not reply.replayed:
            with suppress(Failure):  # the snapshot is taken all the same
                self._after_snapshot(source(), reply, wait_seconds)
        return reply

    def _after_snapshot(self, box: Sandbox, reply: Reply, waited: float) -> None:
        self._wishes.touch(box)
        runs = reply.status == 201 and box.state is State.RUNNING  # or was seen paused
        if waited and (not runs or self._snapshots.stops(box)):
            self._wishes.look_soon(box)

    def snapshot(self, tenant: str, snapshot_id: str) -> Snapshot:
        """The record of a snapshot."""
        return self._snapshots.get(tenant, snapshot_id)

    def snapshots(
        self, tenant: str, filters: SnapshotFilters, *, limit: int, cursor: str | None
    ) -> tuple[Sequence[Snapshot], str | None]:
        """One page, newest first, and the cursor of the next; raises Invalid on a bad cursor."""
        return self._listing.page(Snapshot, tenant, filters, limit=limit, cursor=cursor)

    def destroy_snapshot(self, tenant: str, snapshot_id: str) -> Snapshot:
        """Wish it gone; the record after what could be done at once."""
        return self._snapshots.destroy(tenant, snapshot_id)

    def run(self, tenant: str, sandbox_id: str, command: Command) -> Iterator[Output | Exit]:
        """Run a command, at most once."""
        box = self._seen(tenant, sandbox_id)
        return self._watched(box, self._session.run(box, command))

    def read_file(self, tenant: str, sandbox_id: str, path: str, limit: int) -> bytes:
        """A file's content."""
        return self._live(tenant, sandbox_id, lambda b: self._session.read_file(b, path, limit))

    def write_file(self, tenant: str, sandbox_id: str, path: str, data: bytes) -> None:
        """Create or replace a file."""
        self._live(tenant, sandbox_id, lambda b: self._session.write_file(b, path, data))

    def remove_file(self, tenant: str, sandbox_id: str, path: str) -> None:
        """Remove a file or directory."""
        self._live(tenant, sandbox_id, lambda b: self._session.remove_file(b, path))

    def list_directory(self, tenant: str, sandbox_id: str, path: str) -> tuple[Entry, ...]:
        """A directory's children."""
        return self._live(tenant, sandbox_id, lambda b: self._session.list_directory(b, path))

    def offer_download(
        self, tenant: str, sandbox_id: str, path: str, *, seconds: float
    ) -> Download:
        """Copy a file to where its URL reads it, in so many seconds."""
        return self._live(tenant, sandbox_id, lambda b: self._transfers.download(b, path, seconds))

    def offer_upload(self, tenant: str, sandbox_id: str, path: str, size: int | None) -> Upload:
        """A URL for a file's bytes, and the id to take them by."""
        return self._live(tenant, sandbox_id, lambda b: self._transfers.upload(b, path, size))

    def take_upload(self, tenant: str, sandbox_id: str, upload_id: str, *, seconds: float) -> None:
        """Bring what was uploaded to its path, in so many seconds."""
        self._live(tenant, sandbox_id, lambda b: self._transfers.take(b, upload_id, seconds))

    def open_port(self, tenant: str, sandbox_id: str, port: int) -> Endpoint:
        """A private preview endpoint."""
        return self._live(tenant, sandbox_id, lambda b: self._session.open_port(b, port))

    def close_port(self, tenant: str, sandbox_id: str, port: int) -> None:
        """End a preview."""
        self._live(tenant, sandbox_id, lambda b: self._session.close_port(b, port))

    def pools(self) -> Sequence[Pool]:
        """Every pool, in the operator's order."""
        return self._pools.all()

    def broken(self) -> frozenset[str]:
        """Pools whose credential the provider rejects."""
        return self._health.snapshot().broken

    def advance(self, record_id: str) -> bool:
        """A queue worker's message: look at this record. False: it cannot be read."""
        try:
            work = self._lives[kind_of(record_id)].advance(record_id)
        except Unreadable:
            self._store.set_aside(record_id)
            return False
        if work is not None and work.result is not None and isinstance(work.stored, Sandbox):
            self._doubt(work.stored.tenant, work.stored.spec, work.result.status)
        return True

    def guard(self, record_id: str) -> bool:
        """A guard has expired: until the record is over there is another. False: as `advance`."""
        return not self._store.guard(record_id) or self.advance(record_id)

    def sweep(self) -> int:
        """Send a message for everything due soon or overdue; how many were sent."""
        now, sent = self.clock.now(), 0
        for shard in range(SHARDS):
            cursor: str | None = None
            while True:
                due, cursor = self._store.due(shard, now + WAKE_MS, cursor)
                for record_id, state, at in due:
                    queue = "create" if state in BEGINNINGS else "teardown"
                    self._queue.send(queue, record_id, max(at - now, 0) / 1000)
                    sent += 1
                if cursor is None:
                    break
        return sent

    def reconcile(self) -> Sequence[Report]:
        """Compare what every pool runs with what we know."""
        return [self._reconcile.pool(pool.id) for pool in self._pools.all()]

    def heal(self) -> None:
        """Ask broken pools to verify."""
        self._health.heal()

    def authenticate(self, key: Secret) -> Principal | None:
        """Whose key this is, if it is one."""
        item = self._store.get(api_key(self._digest(key)))
        if item is None:
            return None
        scopes = item["scopes"]
        assert isinstance(scopes, list)
        return Principal(str(item["tenant"]), str(item["key_id"]), frozenset(map(str, scopes)))

    def add_key(self, tenant: str, key: Secret, scopes: Sequence[str]) -> str:
        """Accept an API key from now on; its id. Only a keyed hash is stored."""
        digest = self._digest(key)
        key_id = f"key-{digest[:16]}"
        item = {"tenant": tenant, "key_id": key_id, "scopes": list(scopes)}
        self._store.put(api_key(digest), item)
        return key_id

    def _seen(self, tenant: str, sandbox_id: str) -> Sandbox:
        """A tenant's own sandbox; anything else is not there."""
        return self._boxes.owned(tenant, sandbox_id)

    def _doubt(self, tenant: str, spec: Spec, status: int) -> None:
        """A snapshot of which a provider would make no sandbox may be gone there."""
        if spec.snapshot_id is not None and status == CaptureGone.status:
            with suppress(Failure):  # the create is answered all the same
                self._snapshots.doubted(tenant, spec.snapshot_id)

    def _used(self, tenant: str, sandbox_id: str) -> Sandbox:
        """It, for a call that is a use of it."""
        box = self._seen(tenant, sandbox_id)
        self._wishes.touch(box)
        return box

    def _live(self, tenant: str, sandbox_id: str, call: Callable[[Sandbox], T]) -> T:
        box = self._used(tenant, sandbox_id)
        try:
            return call(box)
        except Gone:
            self._wishes.look(box)
            raise

    def _using(self, box: Sandbox, output: Iterator[T]) -> Iterator[T]:
        """Each event is a use."""
        used = replace(box, active_at=0)  # the first event counts, whatever was written before
        for event in output:
            self._wishes.touch(used)
            used = replace(used, active_at=self.clock.now())
            yield event

    def _watched(self, box: Sandbox, output: Iterator[T]) -> Iterator[T]:
        try:
            yield from self._using(box, output)
        except Gone:
            self._wishes.look(box)
            raise

    def _digest(self, key: Secret) -> str:
        pepper = self._pepper.reveal().encode()
        return hmac.new(pepper, b"key\0" + key.reveal().encode(), hashlib.sha256).hexdigest()


__all__ = ["Filters", "Router"]
