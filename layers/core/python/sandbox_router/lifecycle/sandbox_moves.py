"""What the steps that call nobody do to a sandbox: pure."""

from __future__ import annotations

from dataclasses import replace

from ..model.naming import identity
from ..model.pool import Pool
from ..model.sandbox import EDGES, Sandbox, State
from ..ports import Pools
from . import step as s
from .attempts import attempted, settled


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
