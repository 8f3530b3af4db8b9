"""Create: one transaction, then the one verb; replays answer from the key's record."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field, replace

from ..model.failure import KeyReused, NoPool, StoreBusy, Unsupported
from ..model.sandbox import Sandbox, State
from ..model.secret import Secret
from ..model.spec import Cargo, Spec
from ..ports import Ids
from ..routing.route import Route
from ..store import Entry, KeyRecord, Result
from .advance import LEASE_MS, Lifecycle, Work, queue_of
from .answer import answer, failure_of
from .decide import Try
from .moves import moved

CREATE_SECONDS = 600
"""A create that has not succeeded after this, or after its ttl, has failed."""
TRANSIENT = frozenset({"pool_broken", "pool_draining"})


@dataclass(frozen=True)
class CreateRequest:
    """A create as it came in. fingerprint: the canonical body; key: the Idempotency-Key."""

    spec: Spec
    fingerprint: bytes = field(repr=False)
    request_id: str
    cargo: Cargo = field(default_factory=Cargo, repr=False)
    key: str | None = None


@dataclass(frozen=True)
class Reply:
    """What the door answers: status and body text, and whether it was answered before."""

    status: int
    body: str
    sandbox_id: str | None = None
    replayed: bool = False
    retry_after: int | None = None


class Creates:
    """Starts sandboxes, once per key."""

    def __init__(self, lifecycle: Lifecycle, ids: Ids, pepper: Secret) -> None:
        self._lifecycle, self._ids, self._pepper = lifecycle, ids, pepper
        self._store, self._clock = lifecycle.store, lifecycle.clock

    def create(self, tenant: str, request: CreateRequest, route: Route, wait: float) -> Reply:
        """201, 202, or the first answer again; raises KeyReused, Unsupported, NoPool, StoreBusy."""
        key_hash = None if request.key is None else hashlib.sha256(request.key.encode()).hexdigest()
        request_hash = self._hash(request.fingerprint)
        if not route.candidates:
            owner = None if key_hash is None else self._store.key(tenant, key_hash)
            if owner is None:
                raise _unroutable(route)
            return self._replay(tenant, request, owner, request_hash, key_hash, wait)
        box = self._record(tenant, request, route, wait)
        box = replace(box, key_hash=key_hash, request_hash=request_hash)
        entry = Entry(box.created_at, "created", box.state, request_id=box.request_id)
        owner = self._store.insert(box, entry)
        if owner is not None:
            return self._replay(tenant, request, owner, request_hash, key_hash, wait)
        if not wait:
            self._lifecycle.queue.send(queue_of(box), box.id)
            return self._reply(box, None)
        patience = box.created_at + round(wait * 1000)
        work = self._lifecycle.drive(box, cargo=request.cargo, patience=patience)
        return self._reply(work.stored, work.result or self._kept(work.stored))

    def _record(self, tenant: str, request: CreateRequest, route: Route, wait: float) -> Sandbox:
        """The record as it is first stored: claimed with its first intent, or handed over."""
        now, spec = self._clock.now(), request.spec
        box = Sandbox(
            id=self._ids.sandbox(),
            tenant=tenant,
            spec=spec,
            created_at=now,
            expires_at=now + spec.ttl_seconds * 1000,
            create_until=now + min(spec.ttl_seconds, CREATE_SECONDS) * 1000,
            route=route.candidates,
            request_id=request.request_id,
            labels=spec.labels,
            idle_seconds=spec.idle_seconds,
            due_at=now,
        )
        if not wait:
            secrets = request.cargo.env
            seal = self._lifecycle.vault.seal
            return replace(box, sealed=seal(box.id, secrets)) if secrets else box
        lease = now + LEASE_MS
        box = replace(box, epoch=1, nonce=self._ids.nonce(), lease_until=lease, due_at=lease)
        first = Try(pool_id=route.candidates[0].pool_id, round=1)
        return moved(first, box, now, self._lifecycle.deployment, self._lifecycle.pools)

    def _replay(
        self,
        tenant: str,
        request: CreateRequest,
        owner: KeyRecord,
        request_hash: str,
        key_hash: str | None,
        wait: float,
    ) -> Reply:
        """The same key again: the settled result, or the same sandbox, taken up if abandoned."""
        if not hmac.compare_digest(owner.request_hash, request_hash):
            raise KeyReused
        if owner.result is None:
            patience = self._clock.now() + round(wait * 1000)
            work = self._resume(owner, request, patience if wait else 0)
            if work.stored.state is State.STARTING or work.result is not None:
                return replace(self._reply(work.stored, work.result), replayed=True)
            owner = self._store.key(tenant, key_hash or "") or owner
            if owner.result is None:
                return self._reply(work.stored, None)
        status, body = owner.result.status, owner.result.body
        return Reply(status, body, owner.sandbox_id, replayed=True)

    def _resume(self, owner: KeyRecord, request: CreateRequest, patience: int) -> Work:
        if not patience:
            box = self._store.load(owner.sandbox_id)
            if box is None:
                raise StoreBusy
            return Work(stored=box, box=box, cargo=None, until=0)
        work = self._lifecycle.advance(owner.sandbox_id, cargo=request.cargo, patience=patience)
        if work is None:
            raise StoreBusy
        return work

    def _kept(self, box: Sandbox) -> Result | None:
        """The result under the key, where its save was not acknowledged or another settled it."""
        if box.key_hash is None or box.state is State.STARTING:
            return None
        owner = self._store.key(box.tenant, box.key_hash)
        return owner.result if owner is not None and owner.sandbox_id == box.id else None

    def _reply(self, box: Sandbox, result: Result | None) -> Reply:
        result = result or answer(box, self._clock.now())
        retry_after = 1 if result.status == 202 else None
        if box.state is State.FAILED:
            retry_after = failure_of(box).retry_after
        return Reply(result.status, result.body, box.id, retry_after=retry_after)

    def _hash(self, fingerprint: bytes) -> str:
        pepper = self._pepper.reveal().encode()
        return hmac.new(pepper, b"body\0" + fingerprint, hashlib.sha256).hexdigest()


def _unroutable(route: Route) -> Unsupported | NoPool:
    """Which option which pool cannot serve; 503 when time alone would mend one of them."""
    waiting = any(set(r.reasons) <= TRANSIENT for r in route.refused)
    fields = tuple((f"pools.{r.pool_id}", ", ".join(r.reasons)) for r in route.refused)
    if waiting or not route.refused:
        return NoPool(retry_after=30, fields=fields)
    options = sorted({reason.split(":")[0] for r in route.refused for reason in r.reasons})
    return Unsupported(f"no pool can serve: {', '.join(options)}", fields=fields)
