"""What a create answers, from the record alone: whoever settles it stores the same bytes."""

from __future__ import annotations

import json
from typing import Any

from ..model.failure import BY_CODE, Destroyed, Failure, FailureClass, NoPool
from ..model.problem import problem
from ..model.sandbox import Sandbox, State
from ..model.view import attempt_view, sandbox_view
from ..store import Result

REPLAYED = frozenset(
    {FailureClass.PERMISSION, FailureClass.POLICY, FailureClass.INVALID, FailureClass.UNSUPPORTED}
)
"""Refusals that are final for the same body, and so are replayed."""


def rendered(document: dict[str, Any]) -> str:
    """JSON text, compact and stable."""
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


def failure_of(box: Sandbox) -> Failure:
    """Why a sandbox failed, as a client is told; temporary refusals are `no_pool_available`."""
    cls = BY_CODE.get(box.state_reason or "", NoPool)
    if cls.klass in REPLAYED:
        return cls()
    waits = [a.retry_after for a in box.attempts if a.retry_after is not None]
    return NoPool(retry_after=min(waits, default=5))


def answer(box: Sandbox, now: int) -> Result:
    """The answer to the create as the record stands; cost is estimated up to `now`."""
    if box.state is State.STARTING:
        return Result(202, rendered(sandbox_view(box, now)))
    if box.started_at is None:
        failure = failure_of(box) if box.state is State.FAILED else Destroyed()
        attempts = [attempt_view(attempt) for attempt in box.attempts]
        return Result(failure.status, rendered(problem(failure, box.request_id, attempts)))
    return Result(201, rendered(sandbox_view(box, now)))


def first_result(before: Sandbox, after: Sandbox, now: int) -> Result | None:
    """The result to keep under the key with this save: the first that is settled and replayable."""
    if before.state is not State.STARTING or after.state is State.STARTING:
        return None
    if after.state is State.FAILED and failure_of(after).klass not in REPLAYED:
        return None
    return answer(after, now)


def frees_key(before: Sandbox, after: Sandbox) -> bool:
    """A 503 of temporary refusals frees the key once no attempt is open."""
    if after.state is not State.FAILED or after.started_at is not None or not after.settled:
        return False
    if failure_of(after).klass in REPLAYED:
        return False
    return before.state is not State.FAILED or not before.settled
