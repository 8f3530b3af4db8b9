"""What must hold: in every write as it takes place, at every moment, and when nothing is left.

The numbers are those of the guarantees: I7, I10, I11, I15, I16, I17, I21, I24, I27, I28, I39.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from sandbox_router.model.sandbox import Sandbox, State
from sandbox_router.table import Delete, Item, Put, Update, Write
from tests.fakes.account import Box
from tests.fakes.clock import FakeClock
from tests.fakes.provider import FakeProvider
from tests.sim.audit import EDGES, RECORDS, check_entries
from tests.sim.history import Event
from tests.sim.table import FastTable

Vendors = Mapping[str, FakeProvider]


class Watcher:
    """Eyes on every write to the table. slept: a process may have slept before its write."""

    def __init__(
        self,
        clock: FakeClock,
        table: FastTable,
        vendors: Vendors,
        seen: Counter[str],
        skew_ms: int,
    ) -> None:
        self._clock, self._table, self._vendors, self._seen = clock, table, vendors, seen
        self._skew_ms = skew_ms
        self.slept = False

    def __call__(self, writes: Sequence[Write], before: Sequence[Item | None]) -> None:
        check_entries(writes, before)
        for write, old in zip(writes, before, strict=True):
            if isinstance(write, Delete) and write.key[0].startswith("IDEM#"):
                self._seen["a key was freed"] += old is not None
            if isinstance(write, Put) and write.key[1] == "A" and write.item.get("sealed"):
                self._seen["secrets were sealed for the background"] += 1
            if not isinstance(write, Update) or old is None:
                continue
            if not write.key[0].startswith(RECORDS):
                continue
            if write.key[1] == "A":
                self._record(write, old)
            else:
                self._attempt(write, old)

    def _record(self, write: Update, old: Item) -> None:
        new = write.set
        self._seen["secrets were sealed for the background"] += bool(new.get("sealed"))
        state = str(new.get("state", old["state"]))
        if state in ("destroyed", "deleted") and state != old["state"]:
            attempts = [i for i in self._table.partition(write.key[0]) if i["sk"] != "A"]
            known = [i for i in attempts if i.get("instance_id") and i["outcome"] != "gone"]
            assert not known, "I16: destroyed before it was gone"
        deadline = new.get("expires_at", old["expires_at"])
        if deadline != old["expires_at"]:
            wish = old.get("wish_expiry")
            assert isinstance(wish, dict), "I10: a deadline moved and nobody asked"
            assert deadline == wish["value"], "I10: a deadline moved to another moment"
        sealed = {**old, **new}.get("sealed") and "sealed" not in write.remove
        assert not sealed or state == "starting", "secrets are kept after the start"
        lease = new.get("lease_until")
        if isinstance(lease, int) and lease:
            left = lease - self._clock.now()
            assert left <= 900_000, "a lease for ever"
            assert left + self._skew_ms > 0 or self.slept, "a lease is no lease"

    def _attempt(self, write: Update, old: Item) -> None:
        outcome, known = write.set.get("outcome"), old.get("instance_id")
        if old["outcome"] == "unknown" and outcome == "gone" and known is None:
            window = old["window_until"]
            assert isinstance(window, int)
            assert self._clock.now() + self._skew_ms >= window, (
                "I11: forgotten while it may still be born"
            )
        if old["outcome"] == "gone" and outcome in ("created", "adopted"):
            vendor, id_ = self._vendors[str(old["pool_id"])], str(write.set["instance_id"])
            made = vendor.boxes.get(id_) or vendor.shots[id_]
            assert made.alive(self._clock.now()), "I16: what is gone was brought back"


def check_record(box: Sandbox, vendors: Vendors, now: int, skew_ms: int) -> None:
    """What holds for a record at every moment. skew_ms: how far two clocks are apart."""
    for attempt in box.attempts:
        if attempt.outcome == "gone" and attempt.instance_id:
            vendor = vendors[attempt.pool_id].boxes[attempt.instance_id]
            assert not vendor.alive(now), "confirmed gone, and alive"
    if box.state is State.RUNNING and box.server and now < box.expires_at:
        vendor = vendors[box.server.pool_id].boxes[box.server.instance_id or ""]
        assert vendor.alive(now) or vendor.dead_at is not None, "what was handed out never was"
        assert not vendor.deleted_by_us, "what was handed out was destroyed"
        boots = vendors[box.server.pool_id].boots_ms
        assert now >= vendor.born_at + boots, "I21: handed out before it was ready"
    if box.state_reason == "expired":
        assert now + skew_ms >= box.expires_at, "I19: expired before its time"
    asked = Counter((a.round, a.pool_id) for a in box.attempts)
    assert max(asked.values(), default=1) == 1, "I24: a pool was asked twice in a pass"


def check_calls(boxes: Iterable[Sandbox], vendors: Mapping[str, FakeProvider], upsets: int) -> None:
    """I22, I27, I28: whom we called, and how often. `upsets`: crashes and takeovers, each good for
    one repeat. In one moment a client's looks and what they lead to are six calls at most.
    """
    for name, vendor in vendors.items():
        creates = Counter(subject for op, subject in vendor.calls if op == "create")
        assert max(creates.values(), default=0) <= 2 + upsets, "I28: asked again and again"
        most = max((n for (_, about, _), n in vendor.moments.items() if about), default=0)
        assert most <= 6 + upsets, "I28: asked the same again without a pause"
        about = {subject for op, subject in vendor.calls if op in ("get", "destroy", "pause")}
        assert all(subject.startswith(f"{name}-") for subject in about), "I27: at another pool"
    for record in boxes:
        assert all(attempt.round <= 3 for attempt in record.attempts), "I28: a fourth pass"
        refused = [attempt.code for attempt in record.attempts[:-1]]
        assert "provider_permission" not in refused, "I22: another pool was asked after a 403"


def check_edges(items: Iterable[Item]) -> None:
    """I15: the audit trail walks along the table of edges."""
    for item in items:
        if item.get("event") == "state":
            was, now = str(item["was"]), str(item["state"])
            assert now in EDGES[was], f"{was} -> {now}"


def ended_at(box: Box) -> int | None:
    """When an instance's life ended, whoever ended it."""
    if box.limited:
        return box.ends_at if box.dead_at is None else min(box.dead_at, box.ends_at)
    return box.dead_at


def final(boxes: Iterable[Sandbox], living: Iterable[Box], t: float) -> Iterator[Event]:
    """What an observer sees when all is quiet: every record, and what still runs."""
    for box in boxes:
        instance = None if box.server is None else box.server.instance_id
        state = str(box.state)
        yield Event(
            "seen", "get", t, tenant=box.tenant, sandbox=box.id, state=state, instance=instance
        )
    for each in living:
        sandbox = each.order.tags.get("constal-sandbox-id")
        yield Event("alive", "list", t, sandbox=sandbox, instance=each.id)
