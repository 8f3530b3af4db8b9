"""The one verb: move a record as far as it can go now. Safe to call at any time, from anywhere.

claim → (decide → save the intent → perform)* → save facts and decisions, release, wake.
A crash anywhere leaves a record whose lease ends, whose `due_at` says so, and whose stored intents
say what may have happened.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from ..model.failure import Internal, NotFound, ProviderFailure
from ..model.record import Attempt, Outcome, Record
from ..model.spec import Cargo
from ..ports import Queue
from ..store import Change, ClaimLost, Entry, News, Result, Store, Unreadable, finished
from .answer import first_result, frees_key
from .health import PoolHealth
from .life import Life
from .step import Ask, Effect, Step, Try

R = TypeVar("R", bound=Record)

LEASE_MS = 30_000
"""Longer than any single effect: a create's timeout, or a destroy and its confirmation."""
BUDGET_MS = 20_000
"""No new effect starts after this: a worker's time holds one budget and the longest effect."""
WAKE_MS = 180_000
"""A deadline nearer than this is sent as a message by its writer; the sweep sends the others."""
EARLY_MS = 5_000
"""How far the clocks of two machines may differ: a message that comes so much too early is sent on.
One that comes earlier was for another deadline, whose successor has a message of its own; sent on
too, it would never end, and each sweep adds one.
"""
MIN_CREATE_SECONDS = 2.0


@dataclass
class Work(Generic[R]):
    """One claim's work: the record as stored, as it has become, and what to write of it.

    result: the answer to what began it, if this work settled it.
    until: no new effect starts after this. patience: until when to sit out short waits in place.
    """

    stored: R
    box: R
    cargo: Cargo | None
    until: int
    patience: int = 0
    entries: list[Entry] = field(default_factory=list)
    written: int = 0
    result: Result | None = None

    @property
    def armed(self) -> bool:
        """Are the secrets of the request at hand, or are there none?"""
        return self.cargo is not None or not self.box.secret

    @property
    def dirty(self) -> bool:
        """Is there anything to save?"""
        return self.box != self.stored

    def became(self, box: R, now: int) -> None:
        """Take the changed record and note what an auditor would want to know: never before what
        was noted already, whatever this machine's clock says.
        """
        was, noted = self.box, len(self.entries)
        now = max(now, was.logged_at, was.created_at)
        if box.state is not was.state:
            reason = box.state_reason
            self.entries.append(
                Entry(now, "state", box.state, was.state, reason, request_id=box.request_id)
            )
        for attempt in box.attempts:
            known = was.attempts[attempt.n - 1] if attempt.n <= len(was.attempts) else None
            if known is None or known.outcome is not attempt.outcome:
                self.entries.append(_attempt_entry(box, attempt, now))
        self.box = box if len(self.entries) == noted else replace(box, logged_at=now)


def _attempt_entry(box: Record, attempt: Attempt, now: int) -> Entry:
    """An intent says instead of which pool it is, and why that one does not serve."""
    intended = attempt.outcome is Outcome.INTENDED and attempt.n > 1
    before = box.attempts[attempt.n - 2] if intended else None
    return Entry(
        now,
        f"attempt.{attempt.outcome}",
        box.state,
        reason=(before or attempt).code,
        attempt=attempt.n,
        pool_id=attempt.pool_id,
        request_id=box.request_id,
        instead_of=None if before is None else before.pool_id,
    )


class Lifecycle(Generic[R]):
    """Moves records of one kind. `health` is told how pools fail."""

    def __init__(self, life: Life[R], store: Store, queue: Queue, health: PoolHealth) -> None:
        self.life, self.store, self.queue = life, store, queue
        self.pools, self.vault, self.clock = life.pools, life.vault, life.clock
        self._health = health

    def load(self, record_id: str) -> R | None:
        """The record, consistent; None when there is none of this kind."""
        return self.store.load(self.life.kind, record_id)

    def owned(self, tenant: str, record_id: str) -> R:
        """A tenant's own record; anything else is not there. Raises NotFound, Internal."""
        try:
            box = self.load(record_id)
        except Unreadable:
            raise Internal from None
        if box is None or box.tenant != tenant:
            raise NotFound
        return box

    def advance(
        self, record_id: str, *, cargo: Cargo | None = None, patience: int = 0
    ) -> Work[R] | None:
        """Everything that can be done now, and the record after it; None when there is none."""
        box = self.load(record_id)
        if box is None:
            return None
        now = self.clock.now()
        work = self._work(box, cargo, patience)
        if not (self._calls(work, now) or self._misfiled(box, now)):
            if box.due_at is not None and box.due_at <= now + EARLY_MS:
                self._wake(box, max(box.due_at, box.lease_until))
            return work
        claimed = self.store.claim(box, LEASE_MS)
        if claimed is not None:
            return self.drive(claimed, cargo=cargo, patience=patience)
        fresh = self.load(record_id) or box
        self._wake(fresh, max(fresh.lease_until, now + 1_000))
        return self._work(fresh, cargo, patience)

    def _calls(self, work: Work[R], now: int) -> bool:
        """Is there something to do now, or before a waiting client's patience ends?"""
        waits = work.box.beginning and now < work.patience
        until = work.patience - 1 if waits else now
        return self.life.decide(work.box, until, armed=work.armed) is not None

    @staticmethod
    def _misfiled(box: Record, now: int) -> bool:
        """A lease that ended without a release, or a wish dealt with, left `due_at` behind."""
        return box.due_at is not None and box.due_at <= now and box.lease_until <= now

    def drive(self, claimed: R, *, cargo: Cargo | None = None, patience: int = 0) -> Work[R]:
        """Work off a record whose claim we hold, then release it."""
        work = self._work(claimed, cargo, patience)
        more = True
        while more:
            try:
                more = self._turn(work)
            except News:
                more = self._rebase(work)
            except ClaimLost:
                more = self._leave(work)
        return work

    def _work(self, box: R, cargo: Cargo | None, patience: int) -> Work[R]:
        if cargo is None and box.sealed is not None:
            with suppress(Internal):  # whoever cannot open it can still look it up, and end it
                cargo = Cargo(env=self.vault.unseal(box.id, box.sealed))
        until = max(patience, self.clock.now() + BUDGET_MS)
        return Work(stored=box, box=box, cargo=cargo, until=until, patience=patience)

    def _turn(self, work: Work[R]) -> bool:
        """One step; False when there is nothing more to do here."""
        now = self.clock.now()
        step = self.life.decide(work.box, now, armed=work.armed)
        if step is None or self._over(step, work, now):
            if self._waited(work, now):
                return True
            self._release(work, now)
            return False
        if not isinstance(step, Effect):
            work.became(self.life.moved(step, work.box, now), now)
            return True
        if work.dirty or now + self._longest(step, work) > work.box.lease_until:
            self._save(work, now)
        self._perform(step, work)
        return True

    def _over(self, step: Step, work: Work[R], now: int) -> bool:
        """Has the time of this claim, or of the waiting client, run out for this step?

        What is intended is asked: the next claim would have to doubt it. So no pool is intended
        either that could not be asked now.
        """
        if not isinstance(step, Effect | Try):
            return False
        if isinstance(step, Ask) and work.box.attempts[step.n - 1].outcome is Outcome.INTENDED:
            return False
        if work.patience and work.box.beginning:
            return now >= work.patience
        return now >= work.until

    def _longest(self, step: Step, work: Work[R]) -> int:
        timeouts = self.pools.pool(work.box.attempts[step.n - 1].pool_id).profile.timeouts
        return round(1000 * max(timeouts.create, 2 * timeouts.call))

    def _perform(self, step: Step, work: Work[R]) -> None:
        attempt = work.box.attempts[step.n - 1]
        timeout = self.pools.pool(attempt.pool_id).profile.timeouts.create
        if work.patience:
            left = (work.patience - self.clock.now()) / 1000
            timeout = min(timeout, max(left, MIN_CREATE_SECONDS))
        cargo = work.cargo or Cargo()
        box, failure = self.life.perform(step, work.box, cargo, timeout)
        work.became(box, self.clock.now())
        if isinstance(failure, ProviderFailure):
            creating = self.life.cools and isinstance(step, Ask)
            self._health.failed(attempt.pool_id, failure, creating=creating)

    def _waited(self, work: Work[R], now: int) -> bool:
        """Sit out a short wait of a starting sandbox, under the claim, while its client waits."""
        at = self.life.due(work.box, armed=work.armed)
        if not work.box.beginning or at is None or at >= work.patience or at <= now:
            return False
        self._save(work, now)
        self.clock.sleep((at - now) / 1000)
        return True

    def _save(self, work: Work[R], now: int) -> None:
        """Store what there is and renew the lease."""
        lease = max(now + LEASE_MS, work.stored.lease_until + 1)
        self._store(work, replace(work.box, lease_until=lease, due_at=lease))

    def _release(self, work: Work[R], now: int) -> None:
        """Store the rest, give the claim back, and see to it that somebody looks in time."""
        box = work.box
        secret = box.secret
        if box.beginning and box.sealed is None and work.cargo and secret:
            with suppress(Internal):  # as after a crash: the client's retry brings them again
                box = replace(box, sealed=self.vault.seal(box.id, work.cargo.env))
        at = self.life.due(box, armed=work.armed and (box.sealed is not None or not secret))
        self._store(work, replace(box, lease_until=0, nonce=None, due_at=at))
        self._wake(work.stored, at)

    def _store(self, work: Work[R], after: R) -> None:
        change = Change(
            before=work.stored,
            after=after,
            entries=tuple(work.entries),
            result=first_result(self.life, work.stored, after, self.clock.now()),
            frees_key=frees_key(self.life, work.stored, after),
            first_entry=work.written,
        )
        work.stored = work.box = self.store.save(change)
        work.result = work.result or change.result
        work.written += len(work.entries)
        work.entries.clear()

    def _rebase(self, work: Work[R]) -> bool:
        """News came: start again from the stored record, keeping the facts only we know."""
        fresh = self.load(work.box.id)
        if fresh is None or fresh.epoch != work.box.epoch:
            return self._leave(work)
        kept = fresh
        for mine in work.box.attempts[: len(fresh.attempts)]:
            theirs = fresh.attempts[mine.n - 1]
            if mine.outcome is not Outcome.INTENDED and not (theirs.alive and not mine.alive):
                kept = kept.with_attempt(mine)
        work.entries.clear()
        work.stored = work.box = fresh
        work.became(kept, self.clock.now())
        return True

    def _leave(self, work: Work[R]) -> bool:
        """Somebody took over: tell what we learnt, decide nothing, destroy nothing."""
        known = {a.n: a for a in work.stored.attempts}
        for attempt in work.box.attempts:
            before = known.get(attempt.n)
            if attempt.instance_id and (before is None or before.instance_id is None):
                self.store.tell(work.box, attempt)
                self.queue.send(queue_of(work.box), work.box.id)
        work.stored = work.box = self.load(work.box.id) or work.stored
        return False

    def _wake(self, box: R, at: int | None) -> None:
        now = self.clock.now()
        if at is None or finished(box) or at > now + WAKE_MS:
            return
        self.queue.send(queue_of(box), box.id, max(at - now, 0) / 1000)


def queue_of(box: Record) -> str:
    """Teardown never waits behind creates."""
    return "create" if box.beginning else "teardown"
