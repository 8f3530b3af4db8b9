"""Named situations a simulation must have been in: one that never occurs proves nothing.

`watched` wraps a process's inner calls; `told` reads what a life left behind. Both only count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from sandbox_router.model.record import Outcome
from sandbox_router.model.sandbox import Sandbox, State
from sandbox_router.router import Router
from sandbox_router.store import ORPHAN
from sandbox_router.table import Item, Lost, Put, Update, Write
from tests.fakes.provider import FakeProvider

F = TypeVar("F", bound=Callable[..., Any])
Seen = Counter[str]

EVERY = frozenset(
    {
        "a dead worker's claim was taken over",
        "a late instance was destroyed",
        "an attempt was adopted",
        "a debt was closed as never born",
        "the answer to an insert was lost",
        "the answer to a claim was lost",
        "the answer to a save was lost",
        "a claim was lost in the middle of a create",
        "a claim was lost in the middle of something else",
        "news came at a save",
        "news came at a release",
        "reconcile destroyed an orphan",
        "reconcile told a record of its instance",
        "reconcile woke an overdue record",
        "reconcile made a record look",
        "a key was freed",
        "a second pass served",
        "a sandbox was destroyed during its create",
        "a stuck record was set aside",
        "another pool served",
        "a final refusal ended a create",
        "no pool could serve",
        "a sandbox expired",
        "a sandbox ended idle",
        "a sandbox was lost",
        "a provider stopped a sandbox",
        "a provider started a sandbox",
        "a pause failed and went back",
        "a deadline was moved",
        "secrets were sealed for the background",
        "an instance was found dead before it was ready",
        "the store was busy",
        "a settled answer was replayed",
        "a starting sandbox was replayed",
        "a key was reused with another body",
        "a snapshot was ready",
        "a snapshot failed",
        "a snapshot expired",
        "a snapshot was destroyed while it was made",
        "a snapshot's capture never appeared",
        "a late capture was destroyed",
        "a sandbox was made of a snapshot",
        "a capture was held by what was made of it",
        "reconcile destroyed an orphan capture",
    }
)


def watched(router: Router, seen: Seen) -> Router:
    """The router, its turns of fate counted."""
    store, lifecycle, reconcile = router._store, router._lives[Sandbox], router._reconcile

    def claimed(box: Sandbox, lease_ms: int) -> Sandbox | None:
        mine = claim(box, lease_ms)
        if mine is not None and box.nonce is not None:
            seen["a dead worker's claim was taken over"] += 1
        return mine

    def left(work: Any) -> bool:
        early = work.box.state is State.STARTING
        what = "a create" if early else "something else"
        seen[f"a claim was lost in the middle of {what}"] += 1
        return leave(work)

    def rebased(work: Any) -> bool:
        seen["news came at a save"] += 1
        return rebase(work)

    claim, leave, rebase = store.claim, lifecycle._leave, lifecycle._rebase
    patches: dict[tuple[object, str], object] = {
        (store, "claim"): claimed,
        (store, "set_aside"): _counted(store.set_aside, seen, "a stuck record was set aside"),
        (lifecycle, "_leave"): left,
        (lifecycle, "_rebase"): rebased,
        (lifecycle, "_release"): _raising(lifecycle._release, seen, "news came at a release"),
        (reconcile._store, "note"): _counted(
            reconcile._store.note, seen, "reconcile destroyed an orphan"
        ),
    }
    for (owner, name), wrapped in patches.items():
        setattr(owner, name, wrapped)
    names = {
        "overdue": "reconcile woke an overdue record",
        "changed": "reconcile made a record look",
        "found": "reconcile told a record of its instance",
    }
    acts: Any = reconcile._acts
    for verdict, name in names.items():
        acts[verdict] = _counted(acts[verdict], seen, name)
    return router


def _counted(call: F, seen: Seen, name: str) -> F:
    def counted(*args: Any, **named: Any) -> Any:
        seen[name] += 1
        return call(*args, **named)

    return counted  # type: ignore[return-value]


def _raising(call: F, seen: Seen, name: str) -> F:
    def counted(*args: Any, **named: Any) -> Any:
        try:
            return call(*args, **named)
        except Exception as error:
            seen[name] += type(error).__name__ == "News"
            raise

    return counted  # type: ignore[return-value]


def lost(writes: Iterable[Write], seen: Seen) -> None:
    """A write whose answer was lost: of what kind was it?"""
    for write in writes:
        if not write.key[0].startswith("SBX#") or write.key[1] != "A":
            continue
        if isinstance(write, Put):
            seen["the answer to an insert was lost"] += 1
        elif isinstance(write, Update) and write.set.get("nonce") is not None:
            seen["the answer to a claim was lost"] += 1
        elif isinstance(write, Update) and any(t.attr == "epoch" for w in write.when for t in w):
            seen["the answer to a save was lost"] += 1


def told(
    boxes: Iterable[Sandbox], log: Iterable[Item], vendors: Iterable[FakeProvider], seen: Seen
) -> None:
    """What a life left behind: its records, its audit trail, the vendors' instances."""
    for item in log:
        _entry(item, seen)
    for box in boxes:
        served = box.server
        seen["a second pass served"] += bool(served and served.round > 1)
        seen["another pool served"] += bool(served and served.pool_id != box.route[0].pool_id)
        unborn = [a for a in box.attempts if a.outcome is Outcome.GONE and a.instance_id is None]
        seen["a debt was closed as never born"] += any(a.asked for a in unborn)
        dead = [a for a in box.attempts if a.outcome is Outcome.GONE and not a.ready]
        early = any(a.instance_id and not a.deleted_at for a in dead)
        seen["an instance was found dead before it was ready"] += early
        seen["a deadline was moved"] += bool(box.answered_expiry and not box.expiry_code)
    for vendor in vendors:
        late = any(b.late and b.deleted_by_us for b in vendor.boxes.values())
        seen["a late instance was destroyed"] += late


def _entry(item: Item, seen: Seen) -> None:
    """What an audit entry says happened."""
    event, was, reason = item.get("event"), item.get("was"), item.get("reason")
    if event == ORPHAN and str(item["pk"]).startswith("LOG#snap-"):
        seen["reconcile destroyed an orphan capture"] += 1
    if event == "attempt.adopted":
        seen["an attempt was adopted"] += 1
    if event != "state":
        return
    names = {
        ("starting", "destroying"): "a sandbox was destroyed during its create",
        ("running", "lost"): "a sandbox was lost",
        ("running", "paused"): "a provider stopped a sandbox",
        ("paused", "running"): "a provider started a sandbox",
        ("pausing", "running"): "a pause failed and went back",
    }
    reasons = {
        "expired": "a sandbox expired",
        "idle": "a sandbox ended idle",
        "no_pool_available": "no pool could serve",
        "provider_permission": "a final refusal ended a create",
    }
    for name in (names.get((str(was), str(item["state"]))), reasons.get(str(reason))):
        if name is not None:
            seen[name] += 1


__all__ = ["EVERY", "Lost", "Seen", "lost", "told", "watched"]
