"""How records, attempts, keys and audit entries are spelled as items: keys, attributes, deadlines.

SBX#<id>   A          a sandbox's record: decisions, wishes, index attributes, a copy for lists
SBX#<id>   B#<n>      attempt n: facts
SNAP#<id>             a snapshot's record and attempt, in the same way
LOG#<id>   <time>#…   audit entries, written with the decisions they tell of: the outbox
IDEM#<tenant>#<hash>  an idempotency key, its request hash and first settled result
GUARD#<id>            expires after the deadline; its expiry alone would find the record again
KEY#<hash>            an API key, by keyed hash
POOL#<id>   HEALTH    a pool's health: broken since when, cooling until when
POOL#<id>   SEEN#…    since when an instance that no record knows is seen there
OUTBOX                how far the audit entries were told, where the table has no stream

The roles on AWS end at these prefixes (`infra.cloud.grants`): a new one must be granted there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar
from zlib import crc32

from ..model.record import Attempt, Record
from ..model.sandbox import Sandbox
from ..model.snapshot import Snapshot
from ..table import (
    ALWAYS,
    SK,
    TTL,
    Condition,
    Delete,
    Item,
    Key,
    Put,
    Test,
    Update,
    Write,
    missing,
    when,
)
from .codec import decode, encode, names
from .log import DAY, DAYS, Entry

R = TypeVar("R", bound=Record)
OUTBOX: Key = ("OUTBOX", "A")
SHARDS = 16
KEY_DAYS = 1
GUARD_SECONDS = 600


@dataclass(frozen=True)
class Result:
    """The first settled answer to what began a record, byte for byte."""

    status: int
    body: str


@dataclass(frozen=True)
class KeyRecord:
    """What is known of an idempotency key."""

    record_id: str
    request_hash: str
    result: Result | None


@dataclass(frozen=True)
class Change(Generic[R]):
    """One save: the record as it was read, as it shall be, and what goes with it."""

    before: R
    after: R
    entries: tuple[Entry, ...] = ()
    result: Result | None = None
    frees_key: bool = False
    first_entry: int = 0


FACTS = frozenset({"outcome", "instance_id", "access", "ready", "ended_at", "look_at", "looks"})
COPY = "attempts"
_OUTSIDE = frozenset({COPY})


def kind_of(record_id: str) -> type[Record]:
    """What an id is the id of; a sandbox's where it is nothing of ours."""
    return Snapshot if record_id.startswith("snap-") else Sandbox


_PARTITIONS: Mapping[type[Record], str] = {Sandbox: "SBX#", Snapshot: "SNAP#"}
_SHELVES: Mapping[type[Record], str] = {Sandbox: "", Snapshot: "#snapshots"}


def shelf(kind: type[Record], tenant: str) -> str:
    """The tenant-index partition of a tenant's records of a kind."""
    return f"{tenant}{_SHELVES[kind]}"


def record_key(record_id: str) -> Key:
    """Where a record is."""
    return (f"{_PARTITIONS[kind_of(record_id)]}{record_id}", "A")


def attempt_key(record_id: str, n: int) -> Key:
    """Where attempt n is."""
    return (record_key(record_id)[0], f"B#{n:03d}")


def idempotency_key(tenant: str, key_hash: str | None) -> Key:
    """Where an idempotency key's record is."""
    return (f"IDEM#{tenant}#{key_hash}", "A")


def api_key(digest: str) -> Key:
    """Where an API key is."""
    return (f"KEY#{digest}", "A")


def health_key(pool_id: str) -> Key:
    """Where a pool's health is."""
    return (f"POOL#{pool_id}", "HEALTH")


def sighting_key(pool_id: str, instance_id: str) -> Key:
    """Where the first sighting of an instance without a record is."""
    return (f"POOL#{pool_id}", f"SEEN#{instance_id}")


def shard_of(record_id: str) -> str:
    """The due-index partition of a record."""
    return f"due#{crc32(record_id.encode()) % SHARDS:02d}"


def integer(value: object) -> int:
    """A stored number."""
    assert isinstance(value, int)
    return value


def _copied(attempts: Sequence[Attempt]) -> list[dict[str, Any]]:
    """Attempts as a list shows them, beside the record: a copy, without what opens an instance.
    What is decided goes by the attempts' own items.
    """
    return [encode(replace(attempt, access=None)) for attempt in attempts]


def _attributes(box: Record) -> dict[str, Any]:
    plain = {k: v for k, v in encode(replace(box, attempts=())).items() if k not in _OUTSIDE}
    return {**plain, COPY: _copied(box.attempts)}


def record_item(box: Record) -> dict[str, Any]:
    """The first write of a record, index attributes included."""
    index = {
        "tenant_key": shelf(type(box), box.tenant),
        "tenant_sort": f"{box.created_at:015d}#{box.id}",
    }
    shard = {} if box.due_at is None else {"due_shard": shard_of(box.id)}
    return {**_attributes(box), **index, **shard}


def record_of(kind: type[R], items: Sequence[Item]) -> R | None:
    """A record from the items of its partition, in order; None when the record itself is gone."""
    record, *attempts = items
    if record[SK] != "A":  # its record has expired, its attempts are about to
        return None
    box = decode(kind, {k: v for k, v in record.items() if k not in _OUTSIDE})
    return replace(box, attempts=tuple(decode(Attempt, item) for item in attempts))


def _changes(before: Any, after: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
    """What to set and what to remove; only what is another value is encoded."""
    changed: dict[str, Any] = {}
    removed: list[str] = []
    kind: Any = type(after)
    for name in names(kind):
        was, now = getattr(before, name), getattr(after, name)
        if was is now or was == now or name in _OUTSIDE:
            continue
        if now is None:
            removed.append(name)
        else:
            changed[name] = encode(now)
    return changed, tuple(removed)


def record_update(before: Record, after: Record, held: Condition) -> Update:
    """The record's changed attributes, its place in the due index included."""
    attributes, removed = _changes(before, after)
    # With each state too: a fact that was told beside the record is in no copy yet.
    if after.attempts != before.attempts or after.state is not before.state:
        attributes[COPY] = _copied(after.attempts)
    if after.due_at is None:
        removed = (*removed, "due_shard")
    elif before.due_at is None:
        attributes["due_shard"] = shard_of(after.id)
    return Update(record_key(after.id), set=attributes, remove=removed, when=held)


def attempt_writes(before: Record, after: Record) -> list[Write]:
    """The changed attributes of each changed attempt."""
    writes: list[Write] = []
    for attempt in after.attempts:
        known = before.attempts[attempt.n - 1] if attempt.n <= len(before.attempts) else None
        if attempt != known:
            changed, removed = (encode(attempt), ()) if known is None else _changes(known, attempt)
            writes.append(Update(attempt_key(after.id, attempt.n), set=changed, remove=removed))
    return writes


def key_item(box: Record) -> dict[str, Any]:
    """A fresh idempotency key."""
    return {
        "sandbox_id": box.id,
        "request_hash": box.request_hash,
        TTL: box.expires_at // 1000 + KEY_DAYS * DAY,
    }


def key_record_of(item: Item) -> KeyRecord:
    """An idempotency key as it was stored."""
    status = item.get("result_status")
    result = None if status is None else Result(integer(status), str(item["result_body"]))
    return KeyRecord(str(item["sandbox_id"]), str(item["request_hash"]), result)


def key_writes(change: Change[R]) -> list[Write]:
    """What a save does to its idempotency key, as long as the key is still this record's."""
    box = change.after
    if box.key_hash is None:
        return []
    if change.frees_key:
        return [Delete(_key_of(box), (*missing(), *_owned(box)))]
    if change.result is None:
        return []
    kept = {"result_status": change.result.status, "result_body": change.result.body}
    return [Update(_key_of(box), set=kept, when=_owned(box))]


def _key_of(box: Record) -> Key:
    return idempotency_key(box.tenant, box.key_hash)


def _owned(box: Record) -> Condition:
    return when(Test("sandbox_id", "=", box.id))


def guard_put(box: Record) -> Put:
    """The guard, good until some time after the deadline."""
    return guard_after(box.id, box.expires_at)


def guard_after(record_id: str, moment: int) -> Put:
    """A guard that expires some time after this moment."""
    keep = moment // 1000 + GUARD_SECONDS
    return Put((f"GUARD#{record_id}", "A"), {"sandbox_id": record_id, TTL: keep}, ALWAYS)


def retention_writes(before: Record, after: Record, now: int) -> list[Write]:
    """Deadlines of what hangs on the record: moved with `expires_at`, set at its end."""
    writes: list[Write] = []
    if after.expires_at != before.expires_at:
        writes.append(guard_put(after))
        if after.key_hash is not None:
            keep = {TTL: after.expires_at // 1000 + KEY_DAYS * DAY}
            writes.append(Update(_key_of(after), set=keep, when=_owned(after)))
    if finished(after) and not finished(before):
        end = {TTL: now + DAYS * DAY}
        writes.append(Update(record_key(after.id), set=end))
        writes.extend(Update(attempt_key(after.id, a.n), set=end) for a in after.attempts)
        writes.append(Delete((f"GUARD#{after.id}", "A")))
    return writes


def finished(box: Record) -> bool:
    """Terminal, and no attempt may still leave anything behind."""
    return box.over and box.settled


def one_write_per_key(writes: Sequence[Write]) -> list[Write]:
    """One write per key, as a transaction demands: updates of one item become one."""
    merged: dict[Key, Write] = {}
    for write in writes:
        first = merged.get(write.key)
        if isinstance(first, Update) and isinstance(write, Update):
            both = {**first.set, **write.set}
            merged[write.key] = replace(first, set=both, remove=(*first.remove, *write.remove))
        else:
            merged[write.key] = write
    return list(merged.values())
