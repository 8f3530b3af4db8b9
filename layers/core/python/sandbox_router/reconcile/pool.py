"""Reconcile: from each pool's list, by tag, to the record, read consistently, never by an index.

The net that needs nothing but the provider's list: it finds what a lost record, a lost message or
a fault of ours left behind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from ..model.failure import Failure
from ..model.naming import SANDBOX_ID, TENANT, attempt_of
from ..model.record import Outcome, Record, Wish
from ..model.sandbox import Sandbox
from ..model.snapshot import Snapshot
from ..ports import Clock, Ids, Instance, InstancePage, Pools, Snapshots
from ..store import ORPHAN, Entry, Store, Unreadable, sighting_key
from .compare import REPORTED, Verdict, compare, ripe

PAGES = 200
"""Pages of one list; a longer one is taken up again at the next pass."""
SEEN_SECONDS = 3_600
"""How long a mark of a first sighting is kept."""


class Listed(Protocol):
    """The part of `ports.Provider` that lists what was made, looks at it and ends it."""

    def instances(self, cursor: str | None) -> InstancePage:
        """One page of all there is."""
        ...

    def get(self, instance_id: str) -> Instance | None:
        """Its truthful state."""
        ...

    def destroy(self, instance_id: str) -> None:
        """Ask for its end."""
        ...


@dataclass
class Report:
    """One pass over a pool. complete: the list came to its end; endless: its cursor came back.
    failed: the code of the last thing that could not be done.
    """

    pool_id: str
    verdicts: dict[str, int] = field(default_factory=dict)
    destroyed: list[str] = field(default_factory=list)
    reported: list[str] = field(default_factory=list)
    complete: bool = False
    endless: bool = False
    failed: str | None = None


class Reconcile:
    """Compares what a pool runs with what we know. Raises no Failure."""

    def __init__(
        self,
        store: Store,
        pools: Pools,
        clock: Clock,
        ids: Ids,
        deployment: str,
        advance: Callable[[str], object],
        captures: Callable[[Snapshots], Listed],
    ) -> None:
        self._store, self._pools, self._advance = store, pools, advance
        self._captures = captures
        self._clock, self._ids, self._deployment = clock, ids, deployment
        self._acts: Mapping[Verdict, Callable[[Listed, _Found], None]] = {
            Verdict.OVERDUE: self._wake,
            Verdict.CHANGED: self._look,
            Verdict.FOUND: self._tell,
            Verdict.ORPHAN: self._end,
        }

    def pool(self, pool_id: str) -> Report:
        """One pass; an instance that cannot be dealt with does not keep the others from it, nor a
        list the other list, nor a pool the other pools.
        """
        report = Report(pool_id)
        ends = [self._listed(report, kind) for kind in (Sandbox, Snapshot)]
        report.complete = all(ends)
        return report

    def _listed(self, report: Report, kind: type[Record]) -> bool:
        """Was everything seen that there is of a kind?"""
        try:
            provider = self._pools.provider(report.pool_id)
            if kind is Sandbox:
                return self._list(report, kind, provider)
            if not isinstance(provider, Snapshots):
                return True
            return self._list(report, kind, self._captures(provider))
        except Failure as failure:
            report.failed = failure.code
            return False

    def _list(self, report: Report, kind: type[Record], account: Listed) -> bool:
        """Everything an account lists of a kind; did the list come to its end?"""
        cursor: str | None = None
        cursors: set[str] = set()
        for _ in range(PAGES):
            page = account.instances(cursor)
            for instance in page.instances:
                self._one(kind, account, report, instance)
            cursor = page.cursor
            if cursor is None or cursor in cursors:
                report.endless |= cursor is not None
                return cursor is None
            cursors.add(cursor)
        return False

    def _one(self, kind: type[Record], account: Listed, report: Report, instance: Instance) -> None:
        try:
            self._judged(kind, account, report, instance)
        except Unreadable:  # somebody's record all the same: not an orphan
            report.reported.append(instance.id)
        except Failure as failure:
            report.failed = failure.code

    def _judged(
        self, kind: type[Record], account: Listed, report: Report, instance: Instance
    ) -> None:
        record_id = instance.tags.get(SANDBOX_ID)
        box = None if record_id is None else self._store.load(kind, record_id)
        verdict = compare(instance, box, self._clock.now(), self._deployment)
        report.verdicts[verdict] = report.verdicts.get(verdict, 0) + 1
        if verdict in REPORTED:
            report.reported.append(instance.id)
        if (act := self._acts.get(verdict)) is not None:
            act(account, _Found(report, instance, box))

    def _wake(self, account: Listed, found: _Found) -> None:
        """No queue in between: it may be what is broken."""
        self._advance(found.known.id)

    def _look(self, account: Listed, found: _Found) -> None:
        """The record looks for itself: a list is no proof."""
        box, now = found.known, self._clock.now()
        wish = Wish(self._ids.nonce(), now, "look")
        self._store.wish(box, "wish_look", wish, Entry(now, "wish.look", box.state))
        self._advance(box.id)

    def _tell(self, account: Listed, found: _Found) -> None:
        """The attempt has an instance after all; what becomes of it the record decides."""
        box, now = found.known, self._clock.now()
        n = attempt_of(self._deployment, found.instance.tags)
        attempt = box.attempts[(n or 1) - 1]
        if attempt.outcome is Outcome.GONE and account.get(found.instance.id) is None:
            return  # the list is behind
        told = replace(
            attempt,
            outcome=Outcome.ADOPTED,
            instance_id=found.instance.id,
            ready=True,
            ended_at=now,
            looks=0,
            look_at=now,
        )
        self._store.tell(box, told, again=attempt.outcome is Outcome.GONE)
        self._advance(box.id)

    def _end(self, account: Listed, found: _Found) -> None:
        """Ours and nobody's: marked at the first sight, destroyed at a later one."""
        report, instance, now = found.report, found.instance, self._clock.now()
        key = sighting_key(report.pool_id, instance.id)
        mark = self._store.get(key)
        if mark is None:
            keep = now // 1000 + SEEN_SECONDS
            self._store.put(key, {"first_seen": now, "ttl": keep})
            return
        first_seen = mark["first_seen"]
        assert isinstance(first_seen, int)
        if not ripe(instance, first_seen, now):
            return
        account.destroy(instance.id)
        if account.get(instance.id) is None:
            report.destroyed.append(instance.id)
            self._store.drop(key)
            entry = Entry(now, ORPHAN, "destroyed", reason=instance.id, pool_id=report.pool_id)
            self._store.note(instance.tags[SANDBOX_ID], instance.tags[TENANT], entry)


@dataclass(frozen=True)
class _Found:
    """An instance, the record its tags name, and the pass it was found in."""

    report: Report
    instance: Instance
    box: Record | None

    @property
    def known(self) -> Record:
        """The record; there is one for every verdict but an orphan's."""
        assert self.box is not None
        return self.box
