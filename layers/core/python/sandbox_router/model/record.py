"""What every record of ours is, whatever it is a record of: a claim, attempts, wishes, a key.

Times are integer milliseconds since the epoch. Three kinds of attributes, written by different
hands: *decisions* under the claim, *wishes* by anyone, *facts* on the attempts by whoever learnt
them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Self

from .failure import BY_CODE, Failure


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
    """One try to create an instance, or a capture of one, stored before the call.

    reference: what it is made from. round: which pass over the candidates. epoch: the claim it was
    intended under; under a later claim an intended attempt is an unknown one. look_at: when to look
    at the provider again. settle_until: until when an unknown outcome is settled before the next
    candidate. window_until: until when an instance may still appear. lag_ms, idempotent: the
    profile's answers when it was stored. instance_id: the provider's name of what was made. access:
    sealed, for later calls.
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


@dataclass(frozen=True, kw_only=True)
class Record(ABC):
    """One record, from its first write to its last.

    create_until: what is not there by then has failed. epoch, nonce, lease_until: the claim. news:
    counts wishes and unfenced facts, so that no decision is saved that has not seen them.
    answered_look: the wish to look last dealt with.
    missing_since: when the provider first said it is gone though nobody asked. logged_at: the time
    of the last audit entry. sealed: the secrets of the request, until it has begun.
    """

    id: str
    tenant: str
    created_at: int
    expires_at: int
    create_until: int
    request_id: str
    key_hash: str | None = None
    request_hash: str | None = None
    state: StrEnum
    state_reason: str | None = None
    started_at: int | None = None
    ended_at: int | None = None
    attempts: tuple[Attempt, ...] = ()
    sealed: bytes | None = None
    epoch: int = 0
    nonce: str | None = None
    lease_until: int = 0
    due_at: int | None = None
    news: int = 0
    wish_destroy: Wish | None = None
    wish_look: Wish | None = None
    answered_look: str | None = None
    step_at: int = 0
    step_tries: int = 0
    missing_since: int | None = None
    logged_at: int = 0

    @property
    @abstractmethod
    def beginning(self) -> bool:
        """Is it in the state every record begins in?"""

    @property
    @abstractmethod
    def over(self) -> bool:
        """Is there no way out of its state?"""

    @property
    def failed(self) -> bool:
        """Is its end a failure?"""
        return self.state == "failed"

    @property
    def secret(self) -> bool:
        """Does what it begins with hold secrets, which are in no attribute in clear?"""
        return False

    @property
    def current(self) -> Attempt | None:
        """The newest attempt."""
        return self.attempts[-1] if self.attempts else None

    @property
    def settled(self) -> bool:
        """Is there no attempt that may still leave anything behind?"""
        return not any(attempt.open for attempt in self.attempts)

    def with_attempt(self, attempt: Attempt) -> Self:
        """The record with attempt n replaced or appended."""
        kept = (*self.attempts[: attempt.n - 1], attempt, *self.attempts[attempt.n :])
        return replace(self, attempts=kept)
