"""The life of one kind of record: what every kind has, and what each must say for itself.

What a provider makes is asked for, found, awaited and destroyed in the same way, whatever it is.
A provider call never raises out of here: whatever it answered is written on the record as a fact,
so that the loop saves it before anything else happens. Only a crash leaves no fact, and the intent
saved before the call then speaks for itself. Times are read after the call.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar

from ..model.failure import Failure, Gone, Internal, Outage, ProviderFailure, Refused
from ..model.record import Attempt, Outcome, Record
from ..model.spec import Cargo
from ..ports import Clock, Instance, Order, Pools, Vault
from . import step as s
from .attempts import doubted

R = TypeVar("R", bound=Record)
LOOK_SECONDS = (0, 5, 5, 10, 10, 15, 30)
"""Pauses between look-ups of one attempt; the last repeats."""
LOOK_MS = 1_000
"""From a look that was not answered to the next, at least."""
DESTROY_SECONDS = (1, 1, 2, 4, 8, 16, 32, *([60] * 8), 120, 300)
READY_SECONDS = (0.5, 0.5, 0.5, 0.5, 1, 1, 2, 2, 5)
"""Pauses between looks at what was made and is not ready."""


class Maker(Protocol):
    """The part of `ports.Provider` that makes things and ends them."""

    def create(self, order: Order, *, timeout: float) -> Instance: ...
    def find(self, tags: Mapping[str, str]) -> Instance | None: ...
    def get(self, instance_id: str) -> Instance | None: ...
    def destroy(self, instance_id: str) -> None: ...


@dataclass(frozen=True)
class Call(Generic[R]):
    """What an effect needs: whose, with what, and for how long (seconds)."""

    box: R
    attempt: Attempt
    maker: Maker
    cargo: Cargo
    timeout: float

    @property
    def instance_id(self) -> str:
        """The provider's name of what was made."""
        return self.attempt.instance_id or ""


Effects = Mapping[type[s.Step], Callable[[Call[R]], R]]


class Life(ABC, Generic[R]):
    """What `advance` asks of a kind of record. cools: does a pool that has no room for one of them
    have none for a sandbox?
    """

    kind: type[R]
    cools = False

    def __init__(self, pools: Pools, vault: Vault, clock: Clock, deployment: str) -> None:
        self.pools, self.vault, self.clock, self.deployment = pools, vault, clock, deployment

    @abstractmethod
    def decide(self, box: R, now: int, *, armed: bool) -> s.Step | None:
        """The step to take now. `armed`: are the secrets it begins with at hand?"""

    @abstractmethod
    def due(self, box: R, *, armed: bool) -> int | None:
        """When the record wants to be looked at next; None: never again."""

    @abstractmethod
    def moved(self, step: s.Step, box: R, now: int) -> R:
        """The record after a step that calls nobody."""

    @abstractmethod
    def failure(self, box: R) -> Failure:
        """Why one that is over never served, as a client is told."""

    @abstractmethod
    def view(self, box: R, now: int) -> dict[str, Any]:
        """The record as a client sees it."""

    def perform(
        self, step: s.Step, box: R, cargo: Cargo, timeout: float
    ) -> tuple[R, Failure | None]:
        """The record with what the provider answered, and its failure, if it was one."""
        attempt = box.attempts[step.n - 1]
        call = Call(box, attempt, self.maker(box, attempt), cargo, timeout)
        if isinstance(step, s.Ask):
            return self._ask(call)
        try:
            return self.effects()[type(step)](call), None
        except ProviderFailure as failure:
            return self.failed(step, call, failure), failure

    def maker(self, box: R, attempt: Attempt) -> Maker:
        """Whoever makes it."""
        return self.pools.provider(attempt.pool_id)

    @abstractmethod
    def tags(self, box: R, attempt: Attempt) -> Mapping[str, str]:
        """What an attempt is found by."""

    @abstractmethod
    def order(self, call: Call[R]) -> Order:
        """What is asked for."""

    @abstractmethod
    def broken(self, box: R, now: int) -> R:
        """The record when the provider says that what it made has failed."""

    def effects(self) -> Effects[R]:
        """Step -> what performs it."""
        return {
            s.Find: self._find,
            s.AwaitReady: self._await,
            s.Look: self._look,
            s.Destroy: self._destroy,
        }

    def failed(self, step: s.Step, call: Call[R], failure: ProviderFailure) -> R:
        """A provider that did not answer the question: when to ask again."""
        box, now = call.box, self.clock.now()
        if isinstance(step, s.Look):
            late = now + max(0, LOOK_MS - call.attempt.lag_ms)  # what was missed is looked for then
            return replace(_looked(box), missing_since=None if box.missing_since is None else late)
        if isinstance(step, s.AwaitReady):
            return paced(box, READY_SECONDS, now)
        later = retried if isinstance(step, s.Destroy) else again
        return box.with_attempt(later(call.attempt, now))

    def _ask(self, call: Call[R]) -> tuple[R, Failure | None]:
        """A refusal settles only the first ask: of a repeat it says nothing about the first. What
        is gone refuses too: nothing can be made of it.
        """
        first = call.attempt.asked == 0
        attempt = replace(call.attempt, asked=call.attempt.asked + 1)
        try:
            instance = call.maker.create(self.order(call), timeout=call.timeout)
        except ProviderFailure as failure:
            now = self.clock.now()
            if first and isinstance(failure, Refused | Gone):
                attempt = replace(
                    attempt,
                    outcome=Outcome.REFUSED,
                    code=failure.code,
                    retry_after=failure.retry_after,
                    ended_at=now,
                )
                return call.box.with_attempt(attempt), failure
            if first:
                attempt = doubted(attempt, now, self.pools, failure.code)
            return call.box.with_attempt(again(attempt, now)), failure
        outcome = Outcome.CREATED if first else Outcome.ADOPTED
        return self.known(call.box, attempt, instance, outcome), None

    def known(self, box: R, attempt: Attempt, instance: Instance, outcome: Outcome) -> R:
        access, whole = self.sealed(box, attempt, instance)
        now = self.clock.now()
        known = replace(
            attempt,
            outcome=outcome,
            instance_id=instance.id,
            access=access,
            ready=whole and instance.state == "running",
            ended_at=now,
            code=None,
            looks=0,
            look_at=now,
        )
        if box.beginning:
            box = replace(box, step_at=now, step_tries=0)
        return self.seen(box.with_attempt(known), instance)

    def seen(self, box: R, instance: Instance) -> R:
        """The record with what else the provider said of what it made."""
        return box

    def sealed(self, box: R, attempt: Attempt, instance: Instance) -> tuple[bytes | None, bool]:
        """What later calls need, and whether it is all there. An instance is known also when the
        vault takes nothing: who is not known is not destroyed.
        """
        if not instance.access:
            return attempt.access, True
        try:
            return self.vault.seal(box.id, instance.access), True
        except Internal:
            return attempt.access, attempt.access is not None

    def _find(self, call: Call[R]) -> R:
        box, attempt = call.box, call.attempt
        instance = call.maker.find(self.tags(box, attempt))
        if instance is not None:
            return self.known(box, attempt, instance, Outcome.ADOPTED)
        now, last = self.clock.now(), attempt.window_until + attempt.lag_ms
        if now >= last:
            return box.with_attempt(replace(attempt, outcome=Outcome.GONE, ended_at=now))
        later = again(attempt, now)
        return box.with_attempt(replace(later, look_at=min(later.look_at, last)))

    def _await(self, call: Call[R]) -> R:
        box, attempt = call.box, call.attempt
        instance = call.maker.get(call.instance_id)
        now = self.clock.now()
        if instance is None:
            return _unready(box, attempt, now)
        box = replace(self.seen(box, instance), missing_since=None)
        if instance.state in ("failed", "stopped"):
            return self.broken(box, now)
        access, whole = attempt.access, True
        if access is None:
            access, whole = self.sealed(box, attempt, instance)
        ready = whole and instance.state == "running"
        box = box.with_attempt(replace(attempt, access=access, ready=ready))
        return box if ready else paced(box, READY_SECONDS, now)

    def _look(self, call: Call[R]) -> R:
        """Is what serves still there? Gone only when two looks say so, the list lag apart."""
        instance = self.there(call)
        box, now = _looked(call.box), self.clock.now()
        if instance is not None:
            return self.observed(replace(box, missing_since=None), instance, now)
        if box.missing_since is None:
            return replace(box, missing_since=now)
        if now < box.missing_since + call.attempt.lag_ms:
            return box
        return box.with_attempt(replace(call.attempt, outcome=Outcome.GONE, ended_at=now))

    def there(self, call: Call[R]) -> Instance | None:
        """What serves, as it is now."""
        return call.maker.get(call.instance_id)

    @abstractmethod
    def observed(self, box: R, instance: Instance, now: int) -> R:
        """The record after a look that found what serves."""

    def _destroy(self, call: Call[R]) -> R:
        call.maker.destroy(call.instance_id)
        remains = call.maker.get(call.instance_id)
        now = self.clock.now()
        attempt = replace(call.attempt, deleted_at=call.attempt.deleted_at or now)
        if remains is None:
            return call.box.with_attempt(replace(attempt, outcome=Outcome.GONE, ended_at=now))
        return call.box.with_attempt(retried(attempt, now))


def _after(pauses: tuple[float, ...], tries: int) -> int:
    """The pause after so many tries, in milliseconds; the last repeats."""
    return round(pauses[min(tries, len(pauses) - 1)] * 1000)


def again(attempt: Attempt, now: int) -> Attempt:
    """Still unknown: look at once, then when the list has caught up, then ever more rarely."""
    pause = _after(LOOK_SECONDS, attempt.looks)
    if attempt.looks == 1:
        pause = max(pause, attempt.lag_ms)
    return replace(attempt, looks=attempt.looks + 1, look_at=now + pause)


def retried(attempt: Attempt, now: int) -> Attempt:
    """Not gone yet: destroy it again, ever more rarely."""
    pause = _after(DESTROY_SECONDS, attempt.looks)
    return replace(attempt, looks=attempt.looks + 1, look_at=now + pause)


def paced(box: R, pauses: tuple[float, ...], now: int) -> R:
    """Not yet: try again, ever more rarely."""
    pause = _after(pauses, box.step_tries)
    return replace(box, step_at=now + pause, step_tries=box.step_tries + 1)


def _looked(box: R) -> R:
    return box if box.wish_look is None else replace(box, answered_look=box.wish_look.id)


def _unready(box: R, attempt: Attempt, now: int) -> R:
    """Nobody asked for its end: gone only when two looks say so, the list lag apart."""
    since = box.missing_since
    if since is not None and now >= since + attempt.lag_ms:
        ended = replace(attempt, outcome=Outcome.GONE, ended_at=now, code=Outage.code)
        return replace(box.with_attempt(ended), missing_since=None)
    missing = now if since is None else since
    return replace(paced(box, READY_SECONDS, now), missing_since=missing)
