"""What the steps that call a provider do: one call each, and what was learnt, on the record.

A provider call never raises out of here: whatever it answered is written on the record as a fact,
so that the loop saves it before anything else happens. Only a crash leaves no fact, and the intent
saved before the call then speaks for itself. Times are read after the call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from ..model.failure import (
    BrokenPool,
    Failure,
    Gone,
    Internal,
    Outage,
    ProviderFailure,
    Refused,
    Unknown,
)
from ..model.naming import identity_tags
from ..model.record import Attempt, Outcome
from ..model.sandbox import Sandbox, State
from ..model.spec import Cargo
from ..ports import Clock, Extends, Instance, Order, Pauses, Pools, Provider, Vault
from . import decide as d
from .moves import doubted, shifted

LOOK_SECONDS = (0, 5, 5, 10, 10, 15, 30)
"""Pauses between look-ups of one attempt; the last repeats."""
DESTROY_SECONDS = (1, 1, 2, 4, 8, 16, 32, 60)
POWER_SECONDS = (1, 2, 4, 8)
READY_MS = 500


@dataclass(frozen=True)
class Call:
    """What an effect needs: whose, with what, and for how long (seconds)."""

    box: Sandbox
    attempt: Attempt
    provider: Provider
    cargo: Cargo
    timeout: float

    @property
    def instance_id(self) -> str:
        """The provider's name of the instance."""
        return self.attempt.instance_id or ""


@dataclass(frozen=True)
class Performer:
    """Performs effects."""

    pools: Pools
    vault: Vault
    clock: Clock
    deployment: str

    def perform(
        self, step: d.Step, box: Sandbox, cargo: Cargo, timeout: float
    ) -> tuple[Sandbox, Failure | None]:
        """The record with what the provider answered, and its failure, if it was one."""
        attempt = box.attempts[step.n - 1]
        call = Call(box, attempt, self.pools.provider(attempt.pool_id), cargo, timeout)
        if isinstance(step, d.Ask):
            return self._ask(call)
        try:
            return self._effects()[type(step)](call), None
        except ProviderFailure as failure:
            return self._failed(step, call, failure), failure

    def _effects(self) -> Mapping[type[d.Step], Callable[[Call], Sandbox]]:
        return {
            d.Find: self._find,
            d.AwaitReady: self._await,
            d.Look: self._look,
            d.Destroy: self._destroy,
            d.Pause: self._pause,
            d.Resume: self._resume,
            d.Extend: self._extend,
        }

    def _order(self, call: Call) -> Order:
        box, attempt = call.box, call.attempt
        return Order(
            identity=attempt.identity,
            reference=attempt.reference,
            shape=box.candidate(attempt.pool_id).shape,
            tags={**box.spec.labels, **identity_tags(self.deployment, box, attempt)},
            lifetime_seconds=attempt.lifetime_seconds,
            cargo=call.cargo,
        )

    def _ask(self, call: Call) -> tuple[Sandbox, Failure | None]:
        """A refusal settles only the first ask: of a repeat it says nothing about the first."""
        first = call.attempt.asked == 0
        attempt = replace(call.attempt, asked=call.attempt.asked + 1)
        try:
            instance = call.provider.create(self._order(call), timeout=call.timeout)
        except ProviderFailure as failure:
            now = self.clock.now()
            if first and isinstance(failure, Refused):
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
            return call.box.with_attempt(_again(attempt, now)), failure
        outcome = Outcome.CREATED if first else Outcome.ADOPTED
        return self._known(call.box, attempt, instance, outcome), None

    def _known(
        self, box: Sandbox, attempt: Attempt, instance: Instance, outcome: Outcome
    ) -> Sandbox:
        access, whole = self._sealed(box, attempt, instance)
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
        return box.with_attempt(known)

    def _sealed(
        self, box: Sandbox, attempt: Attempt, instance: Instance
    ) -> tuple[bytes | None, bool]:
        """What later calls need, and whether it is all there. An instance is known also when the
        vault takes nothing: who is not known is not destroyed.
        """
        if not instance.access:
            return attempt.access, True
        try:
            return self.vault.seal(box.id, instance.access), True
        except Internal:
            return attempt.access, attempt.access is not None

    def _find(self, call: Call) -> Sandbox:
        box, attempt = call.box, call.attempt
        instance = call.provider.find(identity_tags(self.deployment, box, attempt))
        if instance is not None:
            return self._known(box, attempt, instance, Outcome.ADOPTED)
        now, last = self.clock.now(), attempt.window_until + attempt.lag_ms
        if now >= last:
            return box.with_attempt(replace(attempt, outcome=Outcome.GONE, ended_at=now))
        later = _again(attempt, now)
        return box.with_attempt(replace(later, look_at=min(later.look_at, last)))

    def _await(self, call: Call) -> Sandbox:
        box, attempt = call.box, call.attempt
        instance = call.provider.get(call.instance_id)
        now = self.clock.now()
        if instance is None:
            return _unready(box, attempt, now)
        box = replace(box, missing_since=None)
        if instance.state in ("failed", "stopped"):
            return shifted(box, State.FAILED, "provider_failed", now)
        access, whole = attempt.access, True
        if access is None:
            access, whole = self._sealed(box, attempt, instance)
        ready = whole and instance.state == "running"
        later = replace(attempt, access=access, ready=ready, look_at=now + READY_MS)
        return box.with_attempt(later)

    def _look(self, call: Call) -> Sandbox:
        instance = call.provider.get(call.instance_id)
        now = self.clock.now()
        box = replace(_looked(call.box), observed_at=now)
        if instance is not None:
            return _observed(replace(box, missing_since=None), instance, now)
        if box.missing_since is None:
            return replace(box, missing_since=now)
        if now < box.missing_since + call.attempt.lag_ms:
            return box
        return box.with_attempt(replace(call.attempt, outcome=Outcome.GONE, ended_at=now))

    def _destroy(self, call: Call) -> Sandbox:
        call.provider.destroy(call.instance_id)
        remains = call.provider.get(call.instance_id)
        now = self.clock.now()
        attempt = replace(call.attempt, deleted_at=call.attempt.deleted_at or now)
        if remains is None:
            return call.box.with_attempt(replace(attempt, outcome=Outcome.GONE, ended_at=now))
        return call.box.with_attempt(_retried(attempt, now))

    def _pause(self, call: Call) -> Sandbox:
        assert isinstance(call.provider, Pauses)
        keep = call.box.wish_power.keep if call.box.wish_power else "memory"
        call.provider.pause(call.instance_id, keep)
        now = self.clock.now()
        paused = replace(call.box, kept=keep, observed_at=now)
        return _answered(shifted(paused, State.PAUSED, "client", now), None)

    def _resume(self, call: Call) -> Sandbox:
        assert isinstance(call.provider, Pauses)
        box, attempt = call.box, call.attempt
        instance = call.provider.resume(call.instance_id, self._remaining(box, attempt))
        now = self.clock.now()
        access, _ = self._sealed(box, attempt, instance)
        attempt = replace(attempt, access=access)
        resumed = replace(box.with_attempt(attempt), observed_at=now)
        return _answered(shifted(resumed, State.RUNNING, "client", now), None)

    def _extend(self, call: Call) -> Sandbox:
        """Provider first, then the record; a paused instance is told when it resumes."""
        wish = call.box.wish_expiry
        assert wish is not None
        later = replace(call.box, expires_at=wish.value)
        lifetime = self.pools.pool(call.attempt.pool_id).profile.lifetime
        told = lifetime.acts_on_paused or call.box.state is not State.PAUSED
        if isinstance(call.provider, Extends) and told:
            call.provider.extend(call.instance_id, self._remaining(later, call.attempt))
        return replace(later, answered_expiry=wish.id, expiry_code=None, step_tries=0)

    def _remaining(self, box: Sandbox, attempt: Attempt) -> int:
        """The provider's limit from now, in seconds: a margin above ours and within its cap."""
        pool = self.pools.pool(attempt.pool_id)
        left = max((box.expires_at - self.clock.now() + 999) // 1000, 0)
        limit = left + pool.profile.lifetime.margin
        return limit if pool.ttl_cap is None else min(limit, pool.ttl_cap)

    def _failed(self, step: d.Step, call: Call, failure: ProviderFailure) -> Sandbox:
        """A provider that did not answer the question: when to ask again, or what to tell."""
        box, now = call.box, self.clock.now()
        match step:
            case d.Find() | d.AwaitReady():
                return box.with_attempt(_again(call.attempt, now))
            case d.Destroy():
                return box.with_attempt(_retried(call.attempt, now))
            case d.Pause() | d.Resume():
                return _power_failed(step, box, now, failure)
            case d.Extend():
                return _extend_failed(box, now, failure)
            case _:
                late = None if box.missing_since is None else now
                return replace(_looked(box), missing_since=late)


def _after(pauses: tuple[int, ...], tries: int) -> int:
    return pauses[min(tries, len(pauses) - 1)] * 1000


def _again(attempt: Attempt, now: int) -> Attempt:
    """Still unknown: look at once, then when the list has caught up, then ever more rarely."""
    pause = _after(LOOK_SECONDS, attempt.looks)
    if attempt.looks == 1:
        pause = max(pause, attempt.lag_ms)
    return replace(attempt, looks=attempt.looks + 1, look_at=now + pause)


def _retried(attempt: Attempt, now: int) -> Attempt:
    pause = _after(DESTROY_SECONDS, attempt.looks)
    return replace(attempt, looks=attempt.looks + 1, look_at=now + pause)


def _unready(box: Sandbox, attempt: Attempt, now: int) -> Sandbox:
    """Nobody asked for its end: gone only when two looks say so, the list lag apart."""
    since = box.missing_since
    if since is not None and now >= since + attempt.lag_ms:
        ended = replace(attempt, outcome=Outcome.GONE, ended_at=now, code=Outage.code)
        return replace(box.with_attempt(ended), missing_since=None)
    later = replace(attempt, look_at=now + READY_MS)
    return replace(box.with_attempt(later), missing_since=now if since is None else since)


def _paced(box: Sandbox, now: int) -> Sandbox:
    pause = _after(POWER_SECONDS, box.step_tries)
    return replace(box, step_at=now + pause, step_tries=box.step_tries + 1)


def _looked(box: Sandbox) -> Sandbox:
    return box if box.wish_look is None else replace(box, answered_look=box.wish_look.id)


def _answered(box: Sandbox, code: str | None) -> Sandbox:
    power = box.wish_power
    return replace(box, answered_power=power.id if power else None, power_code=code)


def _power_failed(step: d.Step, box: Sandbox, now: int, failure: ProviderFailure) -> Sandbox:
    """An unknown answer is asked again (both are safe to repeat); anything else goes back."""
    if isinstance(failure, Unknown | BrokenPool) and box.step_tries < len(POWER_SECONDS):
        return _paced(box, now)
    back = State.RUNNING if isinstance(step, d.Pause) else State.PAUSED
    box = shifted(box, back, "transition_failed", now)
    if isinstance(failure, Gone):
        box = replace(box, missing_since=now)
    return _answered(box, failure.code)


def _extend_failed(box: Sandbox, now: int, failure: ProviderFailure) -> Sandbox:
    if isinstance(failure, Unknown) and box.step_tries < len(POWER_SECONDS):
        return _paced(box, now)
    assert box.wish_expiry is not None
    missing = now if isinstance(failure, Gone) else box.missing_since
    box = replace(box, answered_expiry=box.wish_expiry.id, expiry_code=failure.code)
    return replace(box, missing_since=missing, step_at=now, step_tries=0)


def _observed(box: Sandbox, instance: Instance, now: int) -> Sandbox:
    """Edges the provider took without us."""
    if box.state is State.RUNNING and instance.state in ("paused", "stopped"):
        return shifted(box, State.PAUSED, "provider_stopped", now)
    if box.state is State.PAUSED and instance.state == "running":
        return shifted(box, State.RUNNING, "provider_started", now)
    if instance.state == "failed":
        return shifted(box, State.FAILED, "provider_failed", now)
    return box
