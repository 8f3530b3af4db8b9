"""The record of a sandbox: its states and edges as one table, its attempts, wishes and claim.

Times are integer milliseconds since the epoch. Three kinds of attributes, written by different
hands:
*decisions* under the claim, *wishes* by anyone, *facts* on the attempts by whoever learnt them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from .failure import BY_CODE, Failure
from .money import Price
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


class Outcome(StrEnum):
    """What became of an attempt."""

    INTENDED = "intended"
    CREATED = "created"
    REFUSED = "refused"
    UNKNOWN = "unknown"
    ADOPTED = "adopted"
    GONE = "gone"


@dataclass(frozen=True)
class Attempt:
    """One try to create an instance, stored before the call.

    round: which pass over the candidates. epoch: the claim it was intended under; under a later
    claim an
    intended attempt is an unknown one. look_at: when to look at the provider again. settle_until:
    until
    when an unknown outcome is settled before the next candidate. window_until: until when an
    instance may
    still appear. lag_ms, idempotent: the profile's answers when it was stored. access: sealed,
    for later calls.
    """

    n: int
    pool_id: str
    provider: str
    identity: str
    reference: str
    epoch: int
    round: int
    started_at: int
    settle_until: int
    window_until: int
    lag_ms: int
    idempotent: bool
    lifetime_seconds: int
    outcome: Outcome = Outcome.INTENDED
    ended_at: int | None = None
    code: str | None = None
    retry_after: int | None = None
    instance_id: str | None = None
    access: bytes | None = None
    ready: bool = False
    asked: int = 0
    looks: int = 0
    look_at: int = 0
    deleted_at: int | None = None

    @property
    def klass(self) -> str | None:
        """The failure class of its last answer that was not success; `internal` if too new."""
        return None if self.code is None else str(BY_CODE.get(self.code, Failure).klass)

    @property
    def open(self) -> bool:
        """Could there be an instance nobody has confirmed gone?"""
        return self.outcome not in (Outcome.REFUSED, Outcome.GONE)

    @property
    def alive(self) -> bool:
        """Is an instance known that is not confirmed gone?"""
        return self.instance_id is not None and self.open


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


@dataclass(frozen=True)
class Wish:
    """What somebody asked for: one attribute of the record each, writable by anyone at any time.

    `id` lets the asker find the answer; `verb` is `pause`, `resume` or the reason of a destroy;
    `value` is an absolute time for an extend.
    """

    id: str
    at: int
    verb: str = ""
    keep: str = "memory"
    value: int = 0


@dataclass(frozen=True)
class Sandbox:
    """A sandbox of ours, from its first write to its last.

    epoch, nonce, lease_until: the claim. news: counts wishes and unfenced facts, so that no
    decision is saved that has not seen them. answered_*: the wish last dealt with, `*_code`
    its failure. step_at, step_tries: pacing of the transition under way. missing_since: when the
    provider first said the instance is gone though nobody asked. active_at: its last use through
    us; a running sandbox unused for idle_seconds ends.
    """

    id: str
    tenant: str
    spec: Spec
    created_at: int
    expires_at: int
    create_until: int
    route: tuple[Candidate, ...]
    request_id: str
    namespace: str = "default"
    key_hash: str | None = None
    request_hash: str | None = None
    state: State = State.STARTING
    state_reason: str | None = None
    observed_at: int | None = None
    started_at: int | None = None
    ended_at: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    idle_seconds: int | None = None
    active_at: int = 0
    attempts: tuple[Attempt, ...] = ()
    serving: int = 0
    sealed: bytes | None = None
    epoch: int = 0
    nonce: str | None = None
    lease_until: int = 0
    due_at: int | None = None
    news: int = 0
    wish_destroy: Wish | None = None
    wish_power: Wish | None = None
    wish_expiry: Wish | None = None
    wish_look: Wish | None = None
    answered_power: str | None = None
    answered_expiry: str | None = None
    answered_look: str | None = None
    power_code: str | None = None
    expiry_code: str | None = None
    kept: str | None = None
    step_at: int = 0
    step_tries: int = 0
    missing_since: int | None = None
    running_since: int | None = None
    billed_ms: int = 0

    @property
    def current(self) -> Attempt | None:
        """The newest attempt."""
        return self.attempts[-1] if self.attempts else None

    @property
    def server(self) -> Attempt | None:
        """The attempt whose instance serves this sandbox."""
        return self.attempts[self.serving - 1] if self.serving else None

    @property
    def settled(self) -> bool:
        """Is there no attempt that may still leave an instance behind?"""
        return not any(attempt.open for attempt in self.attempts)

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

    def with_attempt(self, attempt: Attempt) -> Sandbox:
        """The record with attempt n replaced or appended."""
        kept = (*self.attempts[: attempt.n - 1], attempt, *self.attempts[attempt.n :])
        return replace(self, attempts=kept)

    def running_ms(self, now: int) -> int:
        """How long it has run so far."""
        since = self.running_since
        return self.billed_ms + (0 if since is None else now - since)
