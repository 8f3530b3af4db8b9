"""What a snapshot's record calls for, one row a situation: the specification of its life."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from sandbox_router.lifecycle import step
from sandbox_router.lifecycle.snapshot_life import agenda
from sandbox_router.lifecycle.step import Fail, Shift, Step
from sandbox_router.model.record import Attempt, Outcome, Wish
from sandbox_router.model.snapshot import Snapshot, SnapshotState
from tests.unit.core.build import EPOCH, SHAPE, T, attempt, s

S = SnapshotState
EXPIRED = Shift(to=S.DELETING, reason="expired")
ASKED = Shift(to=S.DELETING, reason="client")


def shot(*attempts: Attempt, **changes: Any) -> Snapshot:
    """A snapshot created at T, to be there by 600 s and kept for an hour."""
    made = Snapshot(
        id="snap-a",
        tenant="acme",
        created_at=T,
        expires_at=s(3600),
        create_until=s(600),
        request_id="req-1",
        epoch=EPOCH,
        attempts=attempts,
        sandbox_id="sbx-a",
        instance_id="i-1",
        pool_id="alpha",
        provider="fake",
        contents="disk",
        interrupts="pause",
        shape=SHAPE,
    )
    return replace(made, **changes)


def one(outcome: Outcome, **changes: Any) -> Attempt:
    return attempt(1, outcome, **changes)


def wished(at: float = 0) -> Wish:
    return Wish("w", s(at), "client")


READY = {"state": S.READY, "started_at": T}
UNKNOWN = one(Outcome.UNKNOWN, look_at=s(5))


@dataclass(frozen=True)
class Row:
    name: str
    record: Snapshot
    at: float
    then: Step | float | None


ROWS = (
    Row("nothing tried → tries its pool", shot(), 0, step.Try(pool_id="alpha")),
    Row("nothing tried by the deadline → fails", shot(), 600, Fail(code="provider_outage")),
    Row("intended → asks", shot(one(Outcome.INTENDED)), 0, step.Ask(1)),
    Row(
        "intended under another claim → doubts",
        shot(one(Outcome.INTENDED, epoch=1)),
        0,
        step.Doubt(1),
    ),
    Row(
        "unknown, repeats are safe → asks again",
        shot(replace(UNKNOWN, idempotent=True)),
        0,
        step.Ask(1),
    ),
    Row(
        "unknown, asked twice → looks",
        shot(replace(UNKNOWN, idempotent=True, asked=2)),
        5,
        step.Find(1),
    ),
    Row("unknown → waits for its look", shot(UNKNOWN), 4.9, 5),
    Row("unknown → looks", shot(UNKNOWN), 5, step.Find(1)),
    Row(
        "unknown at the deadline → fails, and is watched on",
        shot(UNKNOWN),
        600,
        Fail(code="unknown_outcome"),
    ),
    Row("not ready → waits", shot(one(Outcome.CREATED, ready=False), step_at=s(2)), 1.9, 2),
    Row(
        "not ready → looks",
        shot(one(Outcome.CREATED, ready=False), step_at=s(2)),
        2,
        step.AwaitReady(1),
    ),
    Row(
        "never ready → fails",
        shot(one(Outcome.CREATED, ready=False), step_at=s(601)),
        600,
        Fail(code="provider_outage"),
    ),
    Row("ready → serves", shot(one(Outcome.CREATED)), 0, step.Serve(1)),
    Row("adopted and ready → serves", shot(one(Outcome.ADOPTED)), 0, step.Serve(1)),
    Row(
        "refused → fails with what it was refused with",
        shot(one(Outcome.REFUSED, code="provider_quota")),
        0,
        Fail(code="provider_quota"),
    ),
    Row("gone while awaited → fails", shot(one(Outcome.GONE)), 0, Fail(code="provider_outage")),
    Row("ready → due at its end only", shot(one(Outcome.CREATED), **READY), 0, 3600),
    Row(
        "ready, look wished → looks",
        shot(one(Outcome.CREATED), wish_look=wished(), **READY),
        0,
        step.Look(1),
    ),
    Row(
        "ready, look wished and answered → due at its end only",
        shot(one(Outcome.CREATED), wish_look=wished(), answered_look="w", **READY),
        0,
        3600,
    ),
    Row(
        "ready, missed → looks again when lists have caught up",
        shot(one(Outcome.CREATED, lag_ms=2_000), missing_since=s(1), **READY),
        2.9,
        3,
    ),
    Row(
        "ready, and gone → fails",
        shot(one(Outcome.GONE), **READY),
        0,
        Fail(code="snapshot_gone"),
    ),
    Row(
        "ready, look wished, wished gone → deleting",
        shot(one(Outcome.CREATED), wish_look=wished(), wish_destroy=wished(), **READY),
        0,
        ASKED,
    ),
    Row("ready, expired → deleting", shot(one(Outcome.CREATED), **READY), 3600, EXPIRED),
    Row(
        "ready, wished gone → deleting",
        shot(one(Outcome.CREATED), wish_destroy=wished(), **READY),
        0,
        ASKED,
    ),
    Row("creating, wished gone → deleting", shot(UNKNOWN, wish_destroy=wished()), 0, ASKED),
    Row("creating, expired → deleting", shot(UNKNOWN, expires_at=s(30)), 30, EXPIRED),
    Row(
        "deleting, there → destroys",
        shot(one(Outcome.CREATED), state=S.DELETING),
        0,
        step.Destroy(1),
    ),
    Row(
        "deleting, unknown → looks before its time to settle is over",
        shot(UNKNOWN, state=S.DELETING),
        5,
        step.Find(1),
    ),
    Row(
        "deleting, unknown for long enough → deleted, and watched on",
        shot(replace(UNKNOWN, look_at=s(25)), state=S.DELETING, state_reason="client"),
        20,
        Shift(to=S.DELETED, reason="client"),
    ),
    Row(
        "deleting, intended → forgone",
        shot(one(Outcome.INTENDED), state=S.DELETING),
        0,
        step.Forgo(1),
    ),
    Row(
        "deleting, gone → deleted",
        shot(one(Outcome.GONE), state=S.DELETING, state_reason="expired"),
        0,
        Shift(to=S.DELETED, reason="expired"),
    ),
    Row("deleted, a debt left → looks", shot(UNKNOWN, state=S.DELETED), 5, step.Find(1)),
    Row(
        "failed, and then it appeared → destroys",
        shot(one(Outcome.ADOPTED), state=S.FAILED),
        0,
        step.Destroy(1),
    ),
    Row("failed, refused → never again", shot(one(Outcome.REFUSED), state=S.FAILED), 0, None),
    Row("deleted, gone → never again", shot(one(Outcome.GONE), state=S.DELETED), 0, None),
)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_the_record_calls_for(row: Row) -> None:
    taken = step.first(agenda(row.record), s(row.at))
    if isinstance(row.then, Step):
        assert taken == row.then
        return
    assert taken is None
    due = step.earliest(agenda(row.record))
    assert due == (None if row.then is None else s(row.then))
