"""Audit entries: what happened to a record, written with the decisions they tell of."""

from __future__ import annotations

from dataclasses import dataclass

from ..model.record import Record
from ..table import PK, SK, TTL, Item, Put
from .codec import decode, encode

LOG = "LOG#"
ORPHAN = "orphan.found"
"""The audit event of an instance of ours that no record had a use for."""
DAYS, DAY = 30, 86_400


@dataclass(frozen=True)
class Entry:
    """One audit entry: what happened to a record, without values of the client's. instead_of:
    the pool asked before, of an attempt that is not the first.
    """

    at: int
    event: str
    state: str
    was: str | None = None
    reason: str | None = None
    attempt: int | None = None
    pool_id: str | None = None
    request_id: str | None = None
    instead_of: str | None = None


@dataclass(frozen=True)
class Logged:
    """An audit entry as it is stored. key: its own, for ever."""

    key: str
    record_id: str
    tenant: str
    entry: Entry


def entry_put(box: Record, entry: Entry, number: int, kind: str = "d") -> Put:
    """An audit entry; `number` tells entries of one claim and millisecond apart."""
    sort = f"{entry.at:015d}#{box.epoch:06d}{kind}{number:04d}"
    keep = max(box.expires_at, entry.at) // 1000 + (DAYS + 1) * DAY
    whose = {"sandbox_id": box.id, "tenant": box.tenant}
    item = {**encode(entry), **whose, "epoch": box.epoch, TTL: keep}
    return Put((f"{LOG}{box.id}", sort), item)


def loose_entry_put(record_id: str, tenant: str, entry: Entry) -> Put:
    """An audit entry about an instance whose record is not there."""
    keep = entry.at // 1000 + DAYS * DAY
    item = {**encode(entry), "sandbox_id": record_id, "tenant": tenant, "epoch": 0, TTL: keep}
    return Put((f"{LOG}{record_id}", f"{entry.at:015d}#{entry.reason}"), item)


def logged(item: Item) -> Logged | None:
    """The audit entry an item is; None for another item. Raises KeyError for half of one."""
    if not str(item[PK]).startswith(LOG):
        return None
    key = f"{item[PK]} {item[SK]}"
    return Logged(key, str(item["sandbox_id"]), str(item["tenant"]), decode(Entry, item))
