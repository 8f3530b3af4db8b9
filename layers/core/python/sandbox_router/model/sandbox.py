"""The record of a sandbox: its states and edges as one table, its route and wishes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from .money import Price
from .record import Attempt, Record, Wish
from .size import Shape
from .spec import Isolation, Spec


class State(StrEnum):
    """Where a sandbox is in its life."""

    STARTING = "starting"
    RUNNING = "running"
    PAUSING = "pausing"
    PAUSED = "paused"
    RESUMING = "resuming"
    DESTROYING = "destroying"
    DESTROYED = "destroyed"
    FAILED = "failed"
    LOST = "lost"

    @property
    def terminal(self) -> bool:
        """No way out of here."""
        return not EDGES[self]


_S = State
EDGES: Mapping[State, frozenset[State]] = {
    _S.STARTING: frozenset({_S.RUNNING, _S.FAILED, _S.DESTROYING}),
    _S.RUNNING: frozenset({_S.PAUSING, _S.PAUSED, _S.DESTROYING, _S.FAILED, _S.LOST}),
    _S.PAUSING: frozenset({_S.PAUSED, _S.RUNNING, _S.DESTROYING, _S.FAILED, _S.LOST}),
    _S.PAUSED: frozenset({_S.RESUMING, _S.RUNNING, _S.DESTROYING, _S.FAILED, _S.LOST}),
    _S.RESUMING: frozenset({_S.RUNNING, _S.PAUSED, _S.DESTROYING, _S.FAILED, _S.LOST}),
    _S.DESTROYING: frozenset({_S.DESTROYED}),
    _S.DESTROYED: frozenset(),
    _S.FAILED: frozenset(),
    _S.LOST: frozenset(),
}


@dataclass(frozen=True)
class Candidate:
    """A pool of the route, in order, with what it would cost and why it is where it is."""

    pool_id: str
    provider: str
    reference: str
    shape: Shape
    price: Price | None
    reasons: tuple[str, ...] = ()
    region: str | None = None
    isolation: Isolation = Isolation.PROCESS


@dataclass(frozen=True, kw_only=True)
class Sandbox(Record):
    """A sandbox of ours, from its first write to its last.

    answered_*: the wish last dealt with, `*_code` its failure. step_at, step_tries: pacing of the
    transition under way. active_at: its last use through us; a running sandbox unused for
    idle_seconds ends.
    """

    spec: Spec
    route: tuple[Candidate, ...]
    namespace: str = "default"
    state: State = State.STARTING
    observed_at: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    idle_seconds: int | None = None
    active_at: int = 0
    serving: int = 0
    wish_power: Wish | None = None
    wish_expiry: Wish | None = None
    answered_power: str | None = None
    answered_expiry: str | None = None
    power_code: str | None = None
    expiry_code: str | None = None
    kept: str | None = None
    running_since: int | None = None
    billed_ms: int = 0

    @property
    def beginning(self) -> bool:
        """Has it not run yet, nor failed to?"""
        return self.state is State.STARTING

    @property
    def over(self) -> bool:
        """Is it in a terminal state?"""
        return self.state.terminal

    @property
    def secret(self) -> bool:
        """Does its environment hold anything?"""
        return bool(self.spec.env_names)

    @property
    def server(self) -> Attempt | None:
        """The attempt whose instance serves this sandbox."""
        return self.attempts[self.serving - 1] if self.serving else None

    @property
    def power_awaited(self) -> bool:
        """Is there a wish to pause or resume that nobody has dealt with yet?"""
        return self.wish_power is not None and self.wish_power.id != self.answered_power

    @property
    def expiry_awaited(self) -> bool:
        """Is there a wish for another end that nobody has dealt with yet?"""
        return self.wish_expiry is not None and self.wish_expiry.id != self.answered_expiry

    def candidate(self, pool_id: str) -> Candidate:
        """The route's entry for a pool."""
        return next(c for c in self.route if c.pool_id == pool_id)

    def running_ms(self, now: int) -> int:
        """How long it has run so far."""
        since = self.running_since
        return self.billed_ms + (0 if since is None else max(now - since, 0))
