"""What can be done for a record, one thing at a time, and how a list of such things is read.

An agenda lists what a record calls for, most urgent kind first, each with the time from which it
holds. The step to take now and the time to look again both come from that one list, so that a
record which is not due never hides a step, and one which is due always has one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from ..model.record import Attempt, Outcome, Record


@dataclass(frozen=True)
class Step:
    """One thing to do. `n` is an attempt, 0 when the step is about the record."""

    n: int = 0


class Effect(Step):
    """A step that calls a provider; its intent is stored first."""


class Ask(Effect):
    """Create the instance of attempt n, or ask again under its identity."""


class Find(Effect):
    """Look attempt n up by its identity."""


class AwaitReady(Effect):
    """Has the instance of attempt n become ready?"""


class Look(Effect):
    """Look at the serving instance."""


class Destroy(Effect):
    """Destroy the instance of attempt n and confirm that it is gone."""


class Pause(Effect):
    """Pause the serving instance."""


class Resume(Effect):
    """Resume the serving instance."""


class Extend(Effect):
    """Move the provider's limit, then our deadline."""


@dataclass(frozen=True)
class Try(Step):
    """Intend an attempt at a pool."""

    pool_id: str = ""
    round: int = 1


class Doubt(Step):
    """An intent of an earlier claim: nobody knows whether it was sent."""


class Forgo(Step):
    """An intent of this claim that will not be sent."""


class Moot(Step):
    """A wish to pause or resume what already is so."""


class Serve(Step):
    """The instance of attempt n is the sandbox now."""


@dataclass(frozen=True)
class Fail(Step):
    """It will not start."""

    code: str = ""


@dataclass(frozen=True, kw_only=True)
class Shift(Step):
    """A move along an edge of the state table that needs nothing else."""

    to: StrEnum
    reason: str | None = None


Agenda = Iterator[tuple[int, Step]]


def first(agenda: Agenda, now: int) -> Step | None:
    """The step to take now."""
    return next((step for at, step in agenda if at <= now), None)


def earliest(agenda: Agenda) -> int | None:
    """When to look next; None: never again."""
    return min((at for at, _ in agenda), default=None)


def over_at(record: Record) -> int | None:
    """When an ending may be called one: nothing known is alive, and what is unknown was given its
    time to settle. None: not yet.
    """
    if any(a.alive or a.outcome is Outcome.INTENDED for a in record.attempts):
        return None
    unsettled = [a.settle_until for a in record.attempts if a.outcome is Outcome.UNKNOWN]
    return max(unsettled, default=0)


def loose(record: Record, attempt: Attempt) -> Agenda:
    """An attempt nobody serves from: destroy what is there, watch for what may still come."""
    match attempt.outcome:
        case Outcome.INTENDED:
            yield (0, Forgo(attempt.n) if attempt.epoch == record.epoch else Doubt(attempt.n))
        case Outcome.UNKNOWN:
            yield (attempt.look_at, Find(attempt.n))
        case Outcome.CREATED | Outcome.ADOPTED:
            yield (attempt.look_at, Destroy(attempt.n))
        case _:
            pass
