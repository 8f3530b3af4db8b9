"""Faults about snapshots and their captures."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from sandbox_router.lifecycle import snapshot_life as life
from sandbox_router.lifecycle import step
from sandbox_router.lifecycle.captures import Captures
from sandbox_router.lifecycle.once import Once
from sandbox_router.model.record import Outcome
from sandbox_router.model.snapshot import Snapshot, SnapshotState
from sandbox_router.reconcile import pool
from sandbox_router.store import Store
from tests.sim.mutants.seeding import Patch, grid, mutant


@mutant("I7", grid("captures", 11, crash=0, shot="ok"))
def _a_snapshot_is_written_down_after_it_is_taken(patch: Patch) -> None:
    real = Store.insert

    def insert(self: Store, box: Any, entry: Any) -> Any:
        return None if isinstance(box, Snapshot) else real(self, box, entry)

    patch.setattr(Store, "insert", insert)


@mutant("I3", grid("captures", 5, shot="lost", idempotent=False, crash=0))
def _a_capture_is_asked_for_again_where_a_repeat_is_a_second(patch: Patch) -> None:
    real = life.SnapshotLife._intent
    patch.setattr(
        life.SnapshotLife, "_intent", lambda self, *r: replace(real(self, *r), idempotent=True)
    )


@mutant("I8 I11", grid("captures", 5, shot="late", idempotent=False, ends="wish"))
def _an_unknown_capture_is_forgotten_at_its_end(patch: Patch) -> None:
    real = step.loose  # a sandbox's agenda has its own name for it

    def loose(record: Any, attempt: Any) -> Iterator[Any]:
        if attempt.outcome is not Outcome.UNKNOWN:
            yield from real(record, attempt)

    patch.setattr(step, "loose", loose)


@mutant("I9", grid("capture ends", 29, crash=0, ends=""))
def _a_snapshot_never_expires(patch: Patch) -> None:
    def ends(snapshot: Snapshot) -> Iterator[Any]:
        if (wish := snapshot.wish_destroy) is not None:
            yield (wish.at, step.Shift(to=SnapshotState.DELETING, reason=wish.verb))

    patch.setattr(life, "_ends", ends)


@mutant(
    "I16", grid("capture ends", 29, crash=0, faults="destroy_capture:kept destroy_capture:kept")
)
def _a_capture_is_believed_to_be_gone(patch: Patch) -> None:
    patch.setattr(Captures, "get", lambda self, instance_id: None)


@mutant("I16", grid("capture ends", 29, crash=0, faults="destroy_capture:cut"))
def _deleted_while_its_capture_is_known_to_be_there(patch: Patch) -> None:
    patch.setattr(step, "over_at", lambda record: 0)


@mutant("I21", grid("captures", 5, crash=0, shots_ms=2_500, shot="ok"))
def _ready_while_the_provider_still_makes_it(patch: Patch) -> None:
    real = Captures._made
    patch.setattr(Captures, "_made", lambda self, c: replace(real(self, c), state="running"))


@mutant("I8", grid("captures", 5, crash=0, shot="failed"))
def _what_failed_is_left_at_the_provider(patch: Patch) -> None:
    real = life.agenda

    def agenda(snapshot: Snapshot) -> Iterator[Any]:
        failed = snapshot.state is SnapshotState.FAILED
        return iter(()) if failed else real(snapshot)

    patch.setattr(life, "agenda", agenda)


@mutant("I1", grid("captures", 7, crash=0, shot="ok", again=31))
def _a_repeated_request_takes_another_snapshot(patch: Patch) -> None:
    real, numbers = Once.begin, itertools.count()

    def begin(self: Any, asked: Any, record: Any) -> Any:
        if self._lifecycle.life.kind is Snapshot:
            asked = replace(asked, key=f"{asked.key}-{next(numbers)}")

            def keyed(request_hash: str) -> Any:
                return replace(record(request_hash), key_hash=asked.key_hash)

            return real(self, asked, keyed)
        return real(self, asked, record)

    patch.setattr(Once, "begin", begin)


@mutant("I9", grid("capture nets", 11, nets="reconcile", crash=0))
def _captures_are_not_reconciled(patch: Patch) -> None:
    real = pool.Reconcile._list

    def listed(self: Any, report: Any, kind: Any, account: Any) -> bool:
        return True if kind is Snapshot else real(self, report, kind, account)

    patch.setattr(pool.Reconcile, "_list", listed)
