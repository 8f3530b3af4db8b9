"""What the steps that call nobody do to a record: pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from ..model.naming import identity
from ..model.pool import Pool
from ..model.record import Attempt, Outcome, Record
from ..model.sandbox import EDGES, Sandbox, State
from ..ports import Pools
from . import step as s

R = TypeVar("R", bound=Record)


def moved(step: s.Step, box: Sandbox, now: int, deployment: str, pools: Pools) -> Sandbox:
    """The record after a step that calls nobody."""
    match step:
        case s.Try():
            return _tried(step, box, now, deployment, pools.pool(step.pool_id))
        case s.Moot():
            assert box.wish_power is not None
            return replace(box, answered_power=box.wish_power.id, power_code=None)
        case s.Serve(n=n):
            begun = replace(box, serving=n, started_at=now, observed_at=now, running_since=now)
            return shifted(begun, State.RUNNING, None, now)
        case s.Fail(code=code):
            return shifted(box, State.FAILED, code, now)
        case s.Shift(to=to, reason=reason):
            return shifted(box, State(to), reason, now)
        case _:
            return settled(step, box, now, pools)


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


def shifted(box: Sandbox, to: State, reason: str | None, now: int) -> Sandbox:
    """The record in another state, with clocks and secrets put right."""
    assert to in EDGES[box.state], f"{box.state} -> {to}"
    changes: dict[str, object] = {"state": to, "state_reason": reason, "step_at": now}
    changes["step_tries"] = 0
    if box.state is State.STARTING:
        changes["sealed"] = None
    if box.running_since is not None and to is not State.RUNNING:
        changes["billed_ms"] = box.running_ms(now)
        changes["running_since"] = None
    if to is State.RUNNING:
        changes["active_at"] = now
        if box.running_since is None:
            changes["running_since"] = now
    if to.terminal:
        changes["ended_at"] = now
    return replace(box, **changes)  # type: ignore[arg-type]


def _tried(step: s.Try, box: Sandbox, now: int, deployment: str, pool: Pool) -> Sandbox:
    limit = box.spec.ttl_seconds + pool.profile.lifetime.margin
    attempt = attempted(
        box,
        pool,
        now,
        identity=identity(deployment, box.id, len(box.attempts) + 1),
        reference=box.candidate(pool.id).reference,
        idempotent=pool.profile.naming.idempotent,
    )
    return box.with_attempt(
        replace(
            attempt,
            provider=box.candidate(pool.id).provider,
            round=step.round,
            lifetime_seconds=limit if pool.ttl_cap is None else min(limit, pool.ttl_cap),
        )
    )


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
