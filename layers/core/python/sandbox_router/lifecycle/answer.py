"""What is answered to the request that began a record, from the record alone: whoever settles it
stores the same bytes.
"""

from __future__ import annotations

import json
from typing import Any, TypeVar

from ..model.failure import BY_CODE, Destroyed, Failure, NoPool
from ..model.failure_class import FailureClass
from ..model.problem import problem
from ..model.record import Record
from ..model.sandbox import Sandbox
from ..model.view import attempt_view
from ..store import Result
from .life import Life

R = TypeVar("R", bound=Record)

REPLAYED = frozenset(
    {FailureClass.PERMISSION, FailureClass.POLICY, FailureClass.INVALID, FailureClass.UNSUPPORTED}
)
"""Refusals that are final for the same body, and so are replayed."""


def rendered(document: dict[str, Any]) -> str:
    """JSON text, compact and stable."""
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


def failure_of(box: Sandbox) -> Failure:
    """Why a sandbox never ran, as a client is told; temporary refusals are `no_pool_available`."""
    if not box.failed:
        return Destroyed()
    cls = BY_CODE.get(box.state_reason or "", NoPool)
    if cls.klass in REPLAYED:
        return cls()
    waits = [a.retry_after for a in box.attempts if a.retry_after is not None]
    return NoPool(retry_after=min(waits, default=5))


def answer(life: Life[R], box: R, now: int) -> Result:
    """The answer to the request that began it, as the record stands; costs count up to `now`."""
    if box.beginning or box.started_at is not None:
        return Result(202 if box.beginning else 201, rendered(life.view(box, now)))
    failure = life.failure(box)
    attempts = [attempt_view(attempt) for attempt in box.attempts]
    return Result(failure.status, rendered(problem(failure, box.request_id, attempts)))


def first_result(life: Life[R], before: R, after: R, now: int) -> Result | None:
    """The result to keep under the key with this save: the first that is settled and replayable."""
    if not before.beginning or after.beginning:
        return None
    if after.failed and life.failure(after).klass not in REPLAYED:
        return None
    return answer(life, after, now)


def frees_key(life: Life[R], before: R, after: R) -> bool:
    """A 503 of temporary refusals frees the key once no attempt is open."""
    if not after.failed or after.started_at is not None or not after.settled:
        return False
    if life.failure(after).klass in REPLAYED:
        return False
    return not before.failed or not before.settled
