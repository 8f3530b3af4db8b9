"""One row of the table that specifies a life, and the words its rows share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from sandbox_router.lifecycle.step import Fail, Shift, Step
from sandbox_router.model.record import Attempt, Outcome
from sandbox_router.model.sandbox import Sandbox, State
from tests.unit.core.build import attempt, s

CREATED, ADOPTED, GONE = Outcome.CREATED, Outcome.ADOPTED, Outcome.GONE
EXPIRED = Shift(to=State.DESTROYING, reason="expired")
NO_POOL = Fail(code="no_pool_available")


@dataclass(frozen=True)
class Row:
    """`then`: the step taken `at` seconds after T; or when something is next due, in seconds; or
    None: never again."""

    name: str
    record: Sandbox
    at: float
    then: Step | float | None
    armed: bool = True


def going(verb: str = "client") -> Shift:
    """To destroying, because somebody wished it."""
    return Shift(to=State.DESTROYING, reason=verb)


def settling(**changes: Any) -> Attempt:
    """Attempt 1, its answer unknown, asked at once, to be looked at 5 s after T."""
    made = attempt(1, Outcome.UNKNOWN, code="unknown_outcome", look_at=s(5))
    return replace(made, **changes)
