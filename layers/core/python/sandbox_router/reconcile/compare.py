"""An instance the provider lists, and the record its tags name: what is to be done about it. Pure.

A list is a hint: nothing here changes a record. An instance is acted on only when its tags prove
that it is ours, and destroyed only when no record has a use for it; the rest is reported.
"""

from __future__ import annotations

from enum import StrEnum

from ..model.naming import ACCOUNT, account, attempt_of
from ..model.record import Outcome, Record
from ..model.sandbox import Sandbox, State
from ..ports import Instance

GRACE_MS = 600_000
"""An instance without a record is left alone while its create may still be on its way."""
OVERDUE_MS = 60_000
"""What is due is sent within a minute by the sweep; later than that nobody sees to it."""


class Verdict(StrEnum):
    """What an instance is to us."""

    FINE = "fine"
    OVERDUE = "overdue"
    CHANGED = "changed"
    FOUND = "found"
    ORPHAN = "orphan"
    CLONE = "clone"
    HALF = "half_tagged"
    FOREIGN = "foreign"


REPORTED = frozenset({Verdict.CLONE, Verdict.HALF})
"""Perhaps ours, and not provably: for the operator's eyes, never destroyed."""


def compare(instance: Instance, box: Record | None, now: int, deployment: str) -> Verdict:
    """What the instance is to us.

    OVERDUE: its record should have been looked at by now: the other nets are torn. CHANGED: its
    state is not the record's: look. FOUND: an attempt that had no instance has one:
    tell the record. ORPHAN: ours, and nobody's: destroy, once seen twice and past the grace.
    """
    n = attempt_of(deployment, instance.tags)
    if n is None:
        half = instance.tags.get(ACCOUNT) == account(deployment)
        return Verdict.HALF if half else Verdict.FOREIGN
    if box is None or n > len(box.attempts):
        return Verdict.ORPHAN
    attempt = box.attempts[n - 1]
    if box.due_at is not None and now - box.due_at >= OVERDUE_MS:
        return Verdict.OVERDUE
    over = box.over or now >= box.expires_at
    if attempt.instance_id is None:
        settling = box.beginning and attempt is box.current
        return Verdict.FINE if settling else Verdict.FOUND
    if attempt.instance_id != instance.id:
        return Verdict.ORPHAN if over else Verdict.CLONE
    if attempt.outcome is Outcome.GONE:
        return Verdict.FOUND
    if not isinstance(box, Sandbox):
        return Verdict.FINE
    paused = instance.state in ("paused", "stopped")
    serving = attempt.n == box.serving and box.state in (State.RUNNING, State.PAUSED)
    differs = serving and paused is (box.state is State.RUNNING)
    return Verdict.CHANGED if differs or instance.state == "failed" else Verdict.FINE


def ripe(instance: Instance, first_seen: int, now: int) -> bool:
    """Is an orphan past its grace? Its own time of birth counts, or when it was first seen."""
    born = instance.created_at if instance.created_at is not None else first_seen
    return now - born >= GRACE_MS and now > first_seen
