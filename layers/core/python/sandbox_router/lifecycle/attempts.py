"""What becomes of attempts without a call, whatever they are attempts at: pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from ..model.pool import Pool
from ..model.record import Attempt, Outcome, Record
from ..ports import Pools
from . import step as s

R = TypeVar("R", bound=Record)
MAX_ASKS = 2
"""How often one identity is asked: once, and once more to settle an unknown answer."""


def attempted(
    box: Record, pool: Pool, now: int, *, identity: str, reference: str, idempotent: bool
) -> Attempt:
    """The intent of one more attempt, under the record's claim."""
    naming = pool.profile.naming
    return Attempt(
        n=len(box.attempts) + 1,
        pool_id=pool.id,
        provider=pool.kind,
        identity=identity,
        reference=reference,
        epoch=box.epoch,
        round=1,
        started_at=now,
        settle_until=now + naming.settle * 1000,
        window_until=now + naming.window * 1000,
        lag_ms=naming.list_lag * 1000,
        idempotent=idempotent,
        lifetime_seconds=0,
    )


def doubted(attempt: Attempt, now: int, pools: Pools, code: str) -> Attempt:
    """The attempt with an outcome nobody knows, its windows open from now.

    It counts as asked: what its identity is answered next says nothing about what was sent before.
    """
    naming = pools.pool(attempt.pool_id).profile.naming
    return replace(
        attempt,
        outcome=Outcome.UNKNOWN,
        code=code,
        ended_at=None,
        settle_until=now + naming.settle * 1000,
        window_until=now + naming.window * 1000,
        asked=max(attempt.asked, 1),
        looks=0,
        look_at=now,
    )


def settled(step: s.Step, box: R, now: int, pools: Pools) -> R:
    """The record after a step about an intent that nobody will ask now."""
    attempt = box.attempts[step.n - 1]
    match step:
        case s.Doubt():
            return box.with_attempt(doubted(attempt, now, pools, "unknown_outcome"))
        case s.Forgo():
            return box.with_attempt(replace(attempt, outcome=Outcome.GONE, ended_at=now))
        case _:
            raise AssertionError(step)
