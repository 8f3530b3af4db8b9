"""A record is begun once per key: one transaction, then the one verb; a replay is answered from the
key's record.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from ..model.failure import KeyReused, StoreBusy
from ..model.record import Record
from ..model.secret import Secret
from ..model.spec import Cargo
from ..ports import Ids
from ..store import Entry, KeyRecord, Result
from .advance import LEASE_MS, Lifecycle, Work, queue_of
from .answer import answer
from .step import Try

R = TypeVar("R", bound=Record)


@dataclass(frozen=True)
class Asked:
    """A request that begins a record. fingerprint: its canonical body; key: its Idempotency-Key;
    wait: the seconds its client waits.
    """

    tenant: str
    request_id: str
    fingerprint: bytes = field(repr=False)
    key: str | None
    wait: float
    cargo: Cargo = field(default_factory=Cargo, repr=False)

    @property
    def key_hash(self) -> str | None:
        """The key as it is stored."""
        return None if self.key is None else hashlib.sha256(self.key.encode()).hexdigest()


@dataclass(frozen=True)
class Reply:
    """What the door answers: status and body text, and whether it was answered before."""

    status: int
    body: str
    record_id: str | None = None
    replayed: bool = False
    retry_after: int | None = None


class Once(Generic[R]):
    """Begins records of one kind, once per key. Raises KeyReused, StoreBusy."""

    def __init__(self, lifecycle: Lifecycle[R], ids: Ids, pepper: Secret) -> None:
        self._lifecycle, self._ids, self._pepper = lifecycle, ids, pepper
        self._store, self._clock = lifecycle.store, lifecycle.clock

    def begin(self, asked: Asked, record: Callable[[str], R]) -> Reply:
        """201, 202, or the first answer again. record: makes the first of it, of its request hash.
        It is stored claimed, with its first intent, or handed over where the client does not wait.
        """
        box = record(self._hash(asked.fingerprint))
        if asked.wait:
            box = self._claimed(box)
        entry = Entry(box.created_at, "created", str(box.state), request_id=box.request_id)
        owner = self._store.insert(box, entry)
        if owner is not None:
            return self._replay(asked, owner)
        if not asked.wait:
            self._lifecycle.queue.send(queue_of(box), box.id)
            return self._reply(box, None)
        patience = box.created_at + round(asked.wait * 1000)
        work = self._lifecycle.drive(box, cargo=asked.cargo, patience=patience)
        return self._reply(work.stored, work.result or self._kept(work.stored))

    def _claimed(self, box: R) -> R:
        now, life = box.created_at, self._lifecycle.life
        lease = now + LEASE_MS
        held = replace(box, epoch=1, nonce=self._ids.nonce(), lease_until=lease, due_at=lease)
        first = life.decide(held, now, armed=True)
        assert isinstance(first, Try)
        return life.moved(first, held, now)

    def again(self, asked: Asked) -> Reply | None:
        """The answer to a request whose key is known; None when it is not."""
        owner = None if asked.key is None else self._store.key(asked.tenant, asked.key_hash or "")
        return None if owner is None else self._replay(asked, owner)

    def _replay(self, asked: Asked, owner: KeyRecord) -> Reply:
        """The same key again: the settled result, or the same record, taken up if abandoned."""
        if not hmac.compare_digest(owner.request_hash, self._hash(asked.fingerprint)):
            raise KeyReused
        if owner.result is None:
            patience = self._clock.now() + round(asked.wait * 1000)
            work = self._resume(owner, asked.cargo, patience if asked.wait else 0)
            if work.stored.beginning or work.result is not None:
                return self._reply(work.stored, work.result, replayed=True)
            owner = self._store.key(asked.tenant, asked.key_hash or "") or owner
            if owner.result is None:
                return self._reply(work.stored, None)
        return Reply(owner.result.status, owner.result.body, owner.record_id, replayed=True)

    def _resume(self, owner: KeyRecord, cargo: Cargo, patience: int) -> Work[R]:
        if not patience:
            box = self._lifecycle.load(owner.record_id)
            if box is None:
                raise StoreBusy
            return Work(stored=box, box=box, cargo=None, until=0)
        work = self._lifecycle.advance(owner.record_id, cargo=cargo, patience=patience)
        if work is None:
            raise StoreBusy
        return work

    def _kept(self, box: R) -> Result | None:
        """The result under the key, where its save was not acknowledged or another settled it."""
        if box.key_hash is None or box.beginning:
            return None
        owner = self._store.key(box.tenant, box.key_hash)
        return owner.result if owner is not None and owner.record_id == box.id else None

    def _reply(self, box: R, result: Result | None, *, replayed: bool = False) -> Reply:
        result = result or answer(self._lifecycle.life, box, self._clock.now())
        retry_after = 1 if result.status == 202 else None
        if box.failed:
            retry_after = self._lifecycle.life.failure(box).retry_after
        return Reply(result.status, result.body, box.id, replayed, retry_after)

    def _hash(self, fingerprint: bytes) -> str:
        pepper = self._pepper.reveal().encode()
        return hmac.new(pepper, b"body\0" + fingerprint, hashlib.sha256).hexdigest()
