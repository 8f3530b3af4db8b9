"""The life of a snapshot: what is to be done for it, and when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..model.failure import BY_CODE, CaptureGone, Destroyed, Failure, Outage, Unknown
from ..model.naming import capture_name
from ..model.record import Attempt, Outcome
from ..model.snapshot import EDGES, Snapshot, SnapshotState
from ..model.view import snapshot_view
from ..ports import Instance, Order, Snapshots
from . import step as s
from .attempts import MAX_ASKS, attempted, settled
from .captures import Captures, Made
from .lasting import Nobody
from .life import Call, Life, Maker


def agenda(snapshot: Snapshot) -> s.Agenda:
    """Everything the record calls for: (time from which it holds, step)."""
    if snapshot.state in (SnapshotState.CREATING, SnapshotState.READY):
        yield from _ends(snapshot)
    match snapshot.state:
        case SnapshotState.CREATING:
            yield from _creating(snapshot)
        case SnapshotState.READY:
            yield from _kept(snapshot)
        case SnapshotState.DELETING:
            at = s.over_at(snapshot)
            if at is not None:
                yield (at, s.Shift(to=SnapshotState.DELETED, reason=snapshot.state_reason))
        case _:
            pass
    if snapshot.over or snapshot.state is SnapshotState.DELETING:
        for attempt in snapshot.attempts:
            yield from s.loose(snapshot, attempt)


def _ends(snapshot: Snapshot) -> s.Agenda:
    if (wish := snapshot.wish_destroy) is not None:
        yield (wish.at, s.Shift(to=SnapshotState.DELETING, reason=wish.verb))
    yield (snapshot.expires_at, s.Shift(to=SnapshotState.DELETING, reason="expired"))


def _creating(snapshot: Snapshot) -> s.Agenda:
    """There is one candidate: an unknown outcome is settled until the deadline."""
    attempt = snapshot.current
    if attempt is None:
        yield (snapshot.create_until, s.Fail(code=Outage.code))
        yield (0, s.Try(pool_id=snapshot.pool_id))
        return
    n = attempt.n
    match attempt.outcome:
        case Outcome.INTENDED if attempt.epoch == snapshot.epoch:
            yield (0, s.Ask(n))
        case Outcome.INTENDED:
            yield (0, s.Doubt(n))
        case Outcome.UNKNOWN:
            yield (snapshot.create_until, s.Fail(code=Unknown.code))
            again = attempt.idempotent and attempt.asked < MAX_ASKS
            yield (0, s.Ask(n)) if again else (attempt.look_at, s.Find(n))
        case Outcome.CREATED | Outcome.ADOPTED:
            yield (0, s.Serve(n)) if attempt.ready else (snapshot.step_at, s.AwaitReady(n))
            yield (snapshot.create_until, s.Fail(code=Outage.code))
        case Outcome.REFUSED | Outcome.GONE:
            yield (0, s.Fail(code=attempt.code or Outage.code))


def _kept(snapshot: Snapshot) -> s.Agenda:
    """It is there until somebody has a reason to doubt that, and looks."""
    attempt = snapshot.attempts[0]
    if attempt.outcome is Outcome.GONE:
        yield (0, s.Fail(code=CaptureGone.code))
    look = snapshot.wish_look
    if look is not None and look.id != snapshot.answered_look:
        yield (look.at, s.Look(attempt.n))
    if snapshot.missing_since is not None:
        yield (snapshot.missing_since + attempt.lag_ms, s.Look(attempt.n))


def shifted(snapshot: Snapshot, to: SnapshotState, reason: str | None, now: int) -> Snapshot:
    """The record in another state."""
    assert to in EDGES[snapshot.state], f"{snapshot.state} -> {to}"
    snapshot = replace(snapshot, state=to, state_reason=reason, step_at=now, step_tries=0)
    return replace(snapshot, ended_at=now) if snapshot.over else snapshot


class SnapshotLife(Life[Snapshot]):
    """The life of a snapshot."""

    kind = Snapshot

    def decide(self, box: Snapshot, now: int, *, armed: bool) -> s.Step | None:
        """As its agenda says."""
        return s.first(agenda(box), now)

    def due(self, box: Snapshot, *, armed: bool) -> int | None:
        """As its agenda says."""
        return s.earliest(agenda(box))

    def moved(self, step: s.Step, box: Snapshot, now: int) -> Snapshot:
        """Along the edges of its states."""
        match step:
            case s.Try():
                return box.with_attempt(self._intent(box, now))
            case s.Serve():
                return shifted(replace(box, started_at=now), SnapshotState.READY, None, now)
            case s.Fail(code=code):
                return shifted(box, SnapshotState.FAILED, code, now)
            case s.Shift(to=to, reason=reason):
                return shifted(box, SnapshotState(to), reason, now)
            case _:
                return settled(step, box, now, self.pools)

    def _intent(self, box: Snapshot, now: int) -> Attempt:
        """One capture of the instance, in its own pool."""
        pool = self.pools.pool(box.pool_id)
        return attempted(
            box,
            pool,
            now,
            identity=capture_name(self.deployment, box.id),
            reference=box.instance_id,
            idempotent=bool(pool.profile.detail("snapshots", "idempotent")),
        )

    def failure(self, box: Snapshot) -> Failure:
        """What the provider refused it with, or that it was not to be."""
        if not box.failed:
            return Destroyed("The snapshot was deleted meanwhile")
        attempt = box.current
        cls = BY_CODE.get(box.state_reason or "", Outage)
        return cls(retry_after=None if attempt is None else attempt.retry_after)

    def view(self, box: Snapshot, now: int) -> dict[str, Any]:
        """In the contract's words."""
        return snapshot_view(box)

    def maker(self, box: Snapshot, attempt: Attempt) -> Maker:
        """The account, as one that makes captures; nobody, where its pool's id is another kind's by
        now.
        """
        account = self.pools.provider(attempt.pool_id)
        able = account if isinstance(account, Snapshots) else Nobody()
        return Captures(able, self.deployment, box)

    def tags(self, box: Snapshot, attempt: Attempt) -> Mapping[str, str]:
        """None: its name is what it is found by."""
        return {}

    def order(self, call: Call[Snapshot]) -> Order:
        """One capture of its instance, under its name."""
        attempt = call.attempt
        return Order(attempt.identity, attempt.reference, call.box.shape, {}, 0)

    def broken(self, box: Snapshot, now: int) -> Snapshot:
        """The provider could not make it."""
        return shifted(box, SnapshotState.FAILED, "provider_failed", now)

    def there(self, call: Call[Snapshot]) -> Instance | None:
        """In either way a provider shows it: one alone may be behind, and what is believed to be
        gone is not kept.
        """
        if (instance := super().there(call)) is not None:
            return instance
        found = call.maker.find({})
        return found if found is not None and found.id == call.instance_id else None

    def observed(self, box: Snapshot, instance: Instance, now: int) -> Snapshot:
        """As it was, unless the provider says that it is good for nothing any more."""
        return self.broken(box, now) if instance.state == "failed" else box

    def seen(self, box: Snapshot, instance: Instance) -> Snapshot:
        """With its size, once the provider tells it."""
        size = instance.size_bytes if isinstance(instance, Made) else None
        return box if size is None else replace(box, size_bytes=size)
