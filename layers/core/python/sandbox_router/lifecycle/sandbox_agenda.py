"""What is to be done for a sandbox, and when: the specification of its life, pure."""

from __future__ import annotations

from ..model.failure import BY_CODE, NoPool, ProviderFailure, Unsupported
from ..model.failure_class import FailureClass
from ..model.record import Attempt, Outcome
from ..model.sandbox import Sandbox, State
from .attempts import MAX_ASKS
from .step import (
    Agenda,
    Ask,
    AwaitReady,
    Doubt,
    Extend,
    Fail,
    Find,
    Look,
    Moot,
    Pause,
    Resume,
    Serve,
    Shift,
    Step,
    Try,
    earliest,
    first,
    loose,
    over_at,
)

MAX_ROUNDS = 3
BACKOFF_MS = 1_000


def decide(box: Sandbox, now: int, *, armed: bool) -> Step | None:
    """The step to take now. `armed`: are the secrets a create needs at hand?"""
    return first(agenda(box, armed=armed), now)


def due(box: Sandbox, *, armed: bool) -> int | None:
    """When the record wants to be looked at next; None: never again."""
    return earliest(agenda(box, armed=armed))


def agenda(box: Sandbox, *, armed: bool) -> Agenda:
    """Everything the record calls for: (time from which it holds, step)."""
    if not box.state.terminal and box.state is not State.DESTROYING:
        yield from _ends(box)
    match box.state:
        case State.STARTING:
            yield from _starting(box, armed)
        case State.RUNNING | State.PAUSED:
            yield from _living(box)
        case State.PAUSING:
            yield (box.step_at, Pause(box.serving))
        case State.RESUMING:
            yield (box.step_at, Resume(box.serving))
        case State.DESTROYING:
            yield from _destroying(box)
        case _:
            pass
    for attempt in box.attempts:
        if not _in_use(box, attempt):
            yield from loose(box, attempt)


def _ends(box: Sandbox) -> Agenda:
    if box.wish_destroy is not None:
        yield (box.wish_destroy.at, Shift(to=State.DESTROYING, reason=box.wish_destroy.verb))
    yield (box.expires_at, Shift(to=State.DESTROYING, reason="expired"))
    if box.idle_seconds is not None and box.state is State.RUNNING:
        idle_at = box.active_at + box.idle_seconds * 1000
        yield (idle_at, Shift(to=State.DESTROYING, reason="idle"))


def _starting(box: Sandbox, armed: bool) -> Agenda:
    attempt = box.current
    if attempt is None:
        yield from _try(box, 0, 1, 0, armed)
        return
    n = attempt.n
    match attempt.outcome:
        case Outcome.INTENDED if attempt.epoch == box.epoch:
            yield (0, Ask(n))
        case Outcome.INTENDED:
            yield (0, Doubt(n))
        case Outcome.UNKNOWN:
            again = armed and attempt.idempotent and attempt.asked < MAX_ASKS
            yield (0, Ask(n)) if again else (attempt.look_at, Find(n))
            yield from _next(box, attempt, attempt.settle_until, armed)
        case Outcome.CREATED | Outcome.ADOPTED:
            yield (0, Serve(n)) if attempt.ready else (box.step_at, AwaitReady(n))
            yield (box.create_until, Fail(code=NoPool.code))
        case Outcome.REFUSED if not _failure(attempt).elsewhere:
            yield (0, Fail(n, code=attempt.code or ""))
        case Outcome.REFUSED | Outcome.GONE:
            yield from _next(box, attempt, 0, armed)


def _try(box: Sandbox, place: int, round_: int, at: int, armed: bool) -> Agenda:
    """Ask the pool at a place of the route, unless the deadline or missing secrets forbid."""
    yield (box.create_until, Fail(code=NoPool.code))
    if armed and at < box.create_until:
        yield (at, Try(pool_id=box.route[place].pool_id, round=round_))


def _next(box: Sandbox, last: Attempt, at: int, armed: bool) -> Agenda:
    """After an attempt that does not serve: the next candidate, the next pass, or the end."""
    tried = [a for a in box.attempts if a.round == last.round]
    if len(tried) < len(box.route):
        yield from _try(box, len(tried), last.round, at, armed)
        return
    refusals = [a for a in tried if a.outcome is Outcome.REFUSED]
    final = any(not _failure(a).temporary for a in refusals)
    if final or not refusals or last.round >= MAX_ROUNDS:
        yield (at, Fail(code=_verdict(box)))
        return
    waits = [a.retry_after * 1000 for a in refusals if a.retry_after is not None]
    pause = min(waits, default=BACKOFF_MS * 2**last.round)
    again = max(at, max(a.ended_at or 0 for a in refusals) + pause)
    if again >= box.create_until:
        yield (at, Fail(code=_verdict(box)))
    else:
        yield from _try(box, 0, last.round + 1, again, armed)


def _verdict(box: Sandbox) -> str:
    """`unsupported` when that is what every pool said, else no pool could serve it now."""
    classes = {_failure(a).klass for a in box.attempts if a.outcome is Outcome.REFUSED}
    open_ = any(a.outcome is Outcome.UNKNOWN for a in box.attempts)
    only_unsupported = classes == {FailureClass.UNSUPPORTED} and not open_
    return Unsupported.code if only_unsupported else NoPool.code


def _failure(attempt: Attempt) -> type[ProviderFailure]:
    cls = BY_CODE.get(attempt.code or "")
    return cls if cls is not None and issubclass(cls, ProviderFailure) else ProviderFailure


def _living(box: Sandbox) -> Agenda:
    serving = box.server
    assert serving is not None
    if serving.outcome is Outcome.GONE:
        yield (0, Shift(to=State.LOST, reason="instance_gone"))
    power = box.wish_power
    if power is not None and power.id != box.answered_power:
        if power.verb == "pause" and box.state is State.RUNNING:
            yield (power.at, Shift(to=State.PAUSING, reason="client"))
        elif power.verb == "resume" and box.state is State.PAUSED:
            yield (power.at, Shift(to=State.RESUMING, reason="client"))
        else:
            yield (power.at, Moot())
    expiry = box.wish_expiry
    if expiry is not None and expiry.id != box.answered_expiry:
        yield (max(expiry.at, box.step_at), Extend(box.serving))
    look = box.wish_look
    if look is not None and look.id != box.answered_look:
        yield (look.at, Look(box.serving))
    if box.missing_since is not None:
        yield (box.missing_since + serving.lag_ms, Look(box.serving))


def _destroying(box: Sandbox) -> Agenda:
    at = over_at(box)
    if at is not None:
        yield (at, Shift(to=State.DESTROYED, reason=box.state_reason))


def _in_use(box: Sandbox, attempt: Attempt) -> bool:
    """Is this attempt the state's own business, rather than a debt or a leftover?"""
    if box.state is State.STARTING:
        return attempt is box.current
    return attempt.n == box.serving and not box.state.terminal and box.state is not State.DESTROYING
