"""The one store: what is read, claimed and saved, over a Table (`items` has the layout).

Every save names the epoch of its claim and the count of news it has seen, so that neither a late
writer nor an overlooked wish can decide anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from ..model.failure import NotFound
from ..model.record import Attempt, Outcome, Record, Wish
from ..model.sandbox import Sandbox
from ..table import (
    PK,
    TTL,
    ConditionFailed,
    Item,
    Put,
    Range,
    Test,
    Update,
    Write,
    missing,
    when,
)
from .access import Access
from .codec import decode, encode
from .items import (
    COPY,
    FACTS,
    Change,
    KeyRecord,
    attempt_key,
    attempt_writes,
    finished,
    guard_after,
    guard_put,
    health_key,
    idempotency_key,
    integer,
    key_item,
    key_record_of,
    key_writes,
    kind_of,
    one_write_per_key,
    record_item,
    record_key,
    record_of,
    record_update,
    retention_writes,
    shard_of,
    shelf,
)
from .log import Entry, entry_put, loose_entry_put

T = TypeVar("T")
R = TypeVar("R", bound=Record)
STUCK_MS, STUCK_MOST_MS = 60_000, 3_600_000


class ClaimLost(Exception):
    """Somebody else holds the record now: nothing was written."""


class News(Exception):
    """A wish or a fact arrived meanwhile: nothing was written; look at the record again."""


class Unreadable(Exception):
    """A record is there and cannot be understood: a newer writer's, or a damaged one."""


class Store(Access):
    """Reads and writes of records. Raises StoreBusy when the table does not take a write."""

    def insert(self, box: Record, entry: Entry) -> KeyRecord | None:
        """Everything a new record needs, in one transaction; the key's owner when it is taken."""
        writes: list[Write] = [
            Put(record_key(box.id), record_item(box), missing()),
            guard_put(box),
            entry_put(box, entry, 0, "c"),  # its first save may come in the same millisecond
            *(Put(attempt_key(box.id, a.n), encode(a)) for a in box.attempts),
        ]
        if box.key_hash is not None:
            expired = (Test(TTL, "<", self._clock.now() // 1000),)
            free = (*missing(), expired)
            key = idempotency_key(box.tenant, box.key_hash)
            writes.insert(0, Put(key, key_item(box), free))
        try:
            self._write(*writes)
        except ConditionFailed as failed:
            return self._taken(box, failed)
        return None

    def _taken(self, box: Record, failed: ConditionFailed) -> KeyRecord | None:
        """Ours after a lost acknowledgement, or somebody's."""
        if box.key_hash is not None and failed.old[0] is not None:
            owner = key_record_of(failed.old[0])
            return None if owner.record_id == box.id else owner
        return None  # the id is 130 random bits: a record under it is this one

    def key(self, tenant: str, key_hash: str) -> KeyRecord | None:
        """An idempotency key's record, if it is kept."""
        item = self.get(idempotency_key(tenant, key_hash))
        if item is None or integer(item[TTL]) < self._clock.now() // 1000:
            return None
        return key_record_of(item)

    def load(self, kind: type[R], record_id: str) -> R | None:
        """The record with its attempts, consistent; None when there is none of this kind."""
        if kind_of(record_id) is not kind:
            return None
        items: list[Item] = []
        cursor: str | None = None
        while True:  # a page may be short, and half a record must decide nothing
            page = self._query(None, record_key(record_id)[0], cursor=cursor)
            items.extend(page.items)
            cursor = page.cursor
            if cursor is None:
                return _read(partial(record_of, kind), items) if items else None

    def claim(self, box: R, lease_ms: int) -> R | None:
        """The record under a new claim; None when it changed or somebody holds it. Every save moves
        the lease on and a release ends it: the lease that was read shows that nobody saved since.
        """
        now, nonce = self._clock.now(), self._ids.nonce()
        lease = now + lease_ms
        claimed = replace(box, epoch=box.epoch + 1, nonce=nonce, lease_until=lease, due_at=lease)
        seen = (Test("epoch", "=", box.epoch), Test("news", "=", box.news))
        unsaved = Test("lease_until", "=", box.lease_until)
        free = when(*seen, unsaved, Test("lease_until", "<=", now))
        try:
            self._write(record_update(box, claimed, free))
        except ConditionFailed as failed:
            old = failed.old[0] or {}
            if old.get("nonce") != nonce:
                return None
        return claimed

    def free(self, box: Record) -> None:
        """End a claim whose holder is known to be dead, unless there is another one by now."""
        ended, same = {"lease_until": 0, **self._due(box.id)}, when(Test("epoch", "=", box.epoch))
        with suppress(ConditionFailed):
            self._write(Update(record_key(box.id), set=ended, when=same))

    def save(self, change: Change[R]) -> R:
        """Facts, decisions and audit entries in one write; raises ClaimLost or News."""
        before, after = change.before, change.after
        held = when(Test("epoch", "=", after.epoch), Test("news", "=", before.news))
        writes: list[Write] = [
            record_update(before, after, held),
            *attempt_writes(before, after),
            *(entry_put(after, e, change.first_entry + i) for i, e in enumerate(change.entries)),
            *key_writes(change),
            *retention_writes(before, after, self._clock.now() // 1000),
        ]
        self._commit(after, one_write_per_key(writes))
        return after

    def _commit(self, after: Record, writes: list[Write]) -> None:
        try:
            self._write(*writes)
        except ConditionFailed as failed:
            old = failed.old[0]
            if old is not None:
                raise (News if old.get("epoch") == after.epoch else ClaimLost) from None
            # Another's by now, after a lost acknowledgement.
            key = idempotency_key(after.tenant, after.key_hash)
            self._commit(after, [write for write in writes if write.key != key])

    def guard(self, record_id: str) -> bool:
        """Another guard after one that expired; False when the record is over and needs none."""
        try:
            box: Record | None = self.load(kind_of(record_id), record_id)
        except Unreadable:
            pass  # whatever it is, nobody has seen its end
        else:
            if box is None or finished(box):
                return False
        self._write(guard_after(record_id, self._clock.now()))
        return True

    def set_aside(self, record_id: str) -> None:
        """Look at an unreadable record ever more rarely: it must not keep others waiting."""
        item = self.get(record_key(record_id)) or {}
        failed = item.get("stuck", 0)
        tries = failed if isinstance(failed, int) else 0
        at = self._clock.now() + min(STUCK_MS * 2 ** min(tries, 10), STUCK_MOST_MS)
        with suppress(ConditionFailed):
            here = when(Test(PK, "exists"))
            later = Update(record_key(record_id), set={"due_at": at}, add={"stuck": 1}, when=here)
            self._write(later)

    def note(self, record_id: str, tenant: str, entry: Entry) -> None:
        """An audit entry about an instance that has no record."""
        self._write(loose_entry_put(record_id, tenant, entry))

    def tell(self, box: Record, attempt: Attempt, *, again: bool = False) -> None:
        """A fact, without any claim: what an instance's maker learnt after losing the record.

        News only while the record knows of no instance: whoever adopted it may have destroyed it
        since. `again`: it was believed gone, and is there.
        """
        known = {k: v for k, v in encode(attempt).items() if k in FACTS}
        due, here = self._due(box.id), when(Test(PK, "exists"))
        gone = (Test("outcome", "=", Outcome.GONE.value),)
        new = (*when(Test("instance_id", "missing")), *((gone,) if again else ()))
        with suppress(ConditionFailed):  # its record has expired: half of one would be worse
            self._write(
                Update(attempt_key(box.id, attempt.n), set=known, when=new),
                Update(record_key(box.id), set=due, add={"news": 1}, when=here),
            )

    def wish(self, box: Record, attr: str, wish: Wish, entry: Entry) -> None:
        """Anybody's wish, stored at once, whoever holds the record."""
        attributes = {attr: encode(wish), **self._due(box.id)}
        wished = Update(record_key(box.id), set=attributes, add={"news": 1})
        self._change(wished, entry_put(box, entry, box.news, "w"))

    def amend(
        self, box: Record, attributes: Mapping[str, object], entry: Entry, *, news: bool = False
    ) -> None:
        """Attributes that are anybody's: labels; with `news`, those a decision goes by."""
        due, seen = (self._due(box.id), {"news": 1}) if news else ({}, {})
        changed = Update(record_key(box.id), set={**attributes, **due}, add=seen)
        self._change(changed, entry_put(box, entry, box.news, "a"))

    def touch(self, box: Sandbox) -> None:
        """Somebody uses it: news, so that no idle end is decided that has not seen it."""
        used = Update(record_key(box.id), set={"active_at": self._clock.now()}, add={"news": 1})
        with suppress(ConditionFailed):
            self._write(replace(used, when=when(Test(PK, "exists"))))

    def _change(self, update: Update, entry: Put) -> None:
        """An unclaimed change of a record that is there; raises NotFound."""
        try:
            self._write(replace(update, when=when(Test(PK, "exists"))), entry)
        except ConditionFailed:
            raise NotFound from None

    def _due(self, record_id: str) -> dict[str, object]:
        return {"due_at": self._clock.now(), "due_shard": shard_of(record_id)}

    def due(
        self, shard: int, until: int, cursor: str | None
    ) -> tuple[list[tuple[str, str, int]], str | None]:
        """One page of what is due: (id, state, when)."""
        page = self._query("due", f"due#{shard:02d}", Range(high=until), cursor=cursor)
        found = [(str(i["id"]), str(i["state"]), integer(i["due_at"])) for i in page.items]
        return found, page.cursor

    def of_tenant(
        self, kind: type[R], tenant: str, since: int | None, limit: int, cursor: str | None
    ) -> tuple[list[R], str | None]:
        """One page of a tenant's records of a kind, newest first, as they were saved last."""
        low = None if since is None else f"{since:015d}"
        page = self._query(
            "tenant",
            shelf(kind, tenant),
            Range(low=low),
            limit=limit,
            cursor=cursor,
            descending=True,
        )
        found = [self._listed(kind, item) for item in page.items]
        return [box for box in found if box is not None], page.cursor

    def _listed(self, kind: type[R], item: Item) -> R | None:
        """A record of a page; one that cannot be understood does not hide the others, and one an
        older writer saved without the copy is read whole.
        """
        with suppress(KeyError, TypeError, ValueError, Unreadable):
            return decode(kind, item) if COPY in item else self.load(kind, str(item["id"]))
        return None

    def health(self, pool_id: str) -> tuple[bool, int | None]:
        """Is the pool broken, and until when does it, or did it last, cool down?"""
        item = self.get(health_key(pool_id)) or {}
        until = item.get("cooling_until")
        return "broken_at" in item, until if isinstance(until, int) else None

    def mark_broken(self, pool_id: str) -> None:
        """The pool is out of routing."""
        self._write(Update(health_key(pool_id), set={"broken_at": self._clock.now()}))

    def mark_whole(self, pool_id: str) -> None:
        """The pool is back."""
        self._write(Update(health_key(pool_id), remove=("broken_at",)))

    def cool(self, pool_id: str, until: int) -> int:
        """The pool cools down until then; the end of the cool-down that is under way, if one is."""
        over = (Test("cooling_until", "<=", self._clock.now()),)
        free = ((Test("cooling_until", "missing"),), over)
        try:
            self._write(Update(health_key(pool_id), set={"cooling_until": until}, when=free))
        except ConditionFailed as failed:
            return integer((failed.old[0] or {})["cooling_until"])
        return until


def _read(decoder: Callable[[Any], T], items: Any) -> T:
    try:
        return decoder(items)
    except (KeyError, TypeError, ValueError) as error:
        raise Unreadable from error
