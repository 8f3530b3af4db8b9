"""The life of a sandbox: what is said of it, and what the steps that call a provider do to it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..model.failure import BrokenPool, Failure, Gone, ProviderFailure, Unknown
from ..model.naming import identity_tags
from ..model.record import Attempt
from ..model.sandbox import Sandbox, State
from ..model.view import sandbox_view
from ..ports import Extends, Instance, Order, Pauses
from . import sandbox_agenda as agenda
from . import step as s
from .answer import failure_of
from .life import Call, Effects, Life, paced
from .sandbox_moves import moved, shifted

POWER_SECONDS = (1, 2, 4, 8)


class SandboxLife(Life[Sandbox]):
    """The life of a sandbox."""

    kind = Sandbox
    cools = True

    def decide(self, box: Sandbox, now: int, *, armed: bool) -> s.Step | None:
        """As its specification says."""
        return agenda.decide(box, now, armed=armed)

    def due(self, box: Sandbox, *, armed: bool) -> int | None:
        """As its specification says."""
        return agenda.due(box, armed=armed)

    def moved(self, step: s.Step, box: Sandbox, now: int) -> Sandbox:
        """Along the edges of its states."""
        return moved(step, box, now, self.deployment, self.pools)

    def failure(self, box: Sandbox) -> Failure:
        """Temporary refusals are `no_pool_available`."""
        return failure_of(box)

    def view(self, box: Sandbox, now: int) -> dict[str, Any]:
        """In the contract's words; its cost is estimated up to `now`."""
        return sandbox_view(box, now)

    def tags(self, box: Sandbox, attempt: Attempt) -> dict[str, str]:
        """Its identity tags."""
        return identity_tags(self.deployment, box, attempt)

    def order(self, call: Call[Sandbox]) -> Order:
        """One instance, with its labels and within its limits."""
        box, attempt = call.box, call.attempt
        return Order(
            identity=attempt.identity,
            reference=attempt.reference,
            shape=box.candidate(attempt.pool_id).shape,
            tags={**box.spec.labels, **self.tags(box, attempt)},
            lifetime_seconds=attempt.lifetime_seconds,
            cargo=call.cargo,
            from_capture=box.spec.snapshot_id is not None,
        )

    def broken(self, box: Sandbox, now: int) -> Sandbox:
        """It will not start."""
        return shifted(box, State.FAILED, "provider_failed", now)

    def effects(self) -> Effects[Sandbox]:
        """Step -> what performs it."""
        return {
            **super().effects(),
            s.Pause: self._pause,
            s.Resume: self._resume,
            s.Extend: self._extend,
        }

    def _look(self, call: Call[Sandbox]) -> Sandbox:
        return replace(super()._look(call), observed_at=self.clock.now())

    def observed(self, box: Sandbox, instance: Instance, now: int) -> Sandbox:
        """Edges the provider took without us."""
        if box.state is State.RUNNING and instance.state in ("paused", "stopped"):
            return shifted(box, State.PAUSED, "provider_stopped", now)
        if box.state is State.PAUSED and instance.state == "running":
            return shifted(box, State.RUNNING, "provider_started", now)
        if instance.state == "failed":
            return shifted(box, State.FAILED, "provider_failed", now)
        return box

    def _pause(self, call: Call[Sandbox]) -> Sandbox:
        assert isinstance(call.maker, Pauses)
        keep = call.box.wish_power.keep if call.box.wish_power else "memory"
        call.maker.pause(call.instance_id, keep)
        now = self.clock.now()
        paused = replace(call.box, kept=keep, observed_at=now)
        return _answered(shifted(paused, State.PAUSED, "client", now), None)

    def _resume(self, call: Call[Sandbox]) -> Sandbox:
        assert isinstance(call.maker, Pauses)
        box, attempt = call.box, call.attempt
        instance = call.maker.resume(call.instance_id, self._remaining(box, attempt))
        now = self.clock.now()
        access, _ = self.sealed(box, attempt, instance)
        attempt = replace(attempt, access=access)
        resumed = replace(box.with_attempt(attempt), observed_at=now)
        return _answered(shifted(resumed, State.RUNNING, "client", now), None)

    def _extend(self, call: Call[Sandbox]) -> Sandbox:
        """Provider first, then the record; a paused instance is told when it resumes."""
        wish = call.box.wish_expiry
        assert wish is not None
        later = replace(call.box, expires_at=wish.value)
        lifetime = self.pools.pool(call.attempt.pool_id).profile.lifetime
        told = lifetime.acts_on_paused or call.box.state is not State.PAUSED
        if isinstance(call.maker, Extends) and told:
            call.maker.extend(call.instance_id, self._remaining(later, call.attempt))
        return replace(later, answered_expiry=wish.id, expiry_code=None, step_tries=0)

    def _remaining(self, box: Sandbox, attempt: Attempt) -> int:
        """The provider's limit from now, in seconds: a margin above ours and within its cap."""
        pool = self.pools.pool(attempt.pool_id)
        left = max((box.expires_at - self.clock.now() + 999) // 1000, 0)
        limit = left + pool.profile.lifetime.margin
        return limit if pool.ttl_cap is None else min(limit, pool.ttl_cap)

    def failed(self, step: s.Step, call: Call[Sandbox], failure: ProviderFailure) -> Sandbox:
        """A provider that did not answer the question: when to ask again, or what to tell."""
        box, now = call.box, self.clock.now()
        match step:
            case s.Pause() | s.Resume():
                return _power_failed(step, box, now, failure)
            case s.Extend():
                return _extend_failed(box, now, failure)
            case _:
                return super().failed(step, call, failure)


def _answered(box: Sandbox, code: str | None) -> Sandbox:
    power = box.wish_power
    return replace(box, answered_power=power.id if power else None, power_code=code)


def _power_failed(step: s.Step, box: Sandbox, now: int, failure: ProviderFailure) -> Sandbox:
    """An unknown answer is asked again (both are safe to repeat); anything else goes back."""
    if isinstance(failure, Unknown | BrokenPool) and box.step_tries < len(POWER_SECONDS):
        return paced(box, POWER_SECONDS, now)
    back = State.RUNNING if isinstance(step, s.Pause) else State.PAUSED
    box = shifted(box, back, "transition_failed", now)
    if isinstance(failure, Gone):
        box = replace(box, missing_since=now)
    return _answered(box, failure.code)


def _extend_failed(box: Sandbox, now: int, failure: ProviderFailure) -> Sandbox:
    if isinstance(failure, Unknown) and box.step_tries < len(POWER_SECONDS):
        return paced(box, POWER_SECONDS, now)
    assert box.wish_expiry is not None
    missing = now if isinstance(failure, Gone) else box.missing_since
    box = replace(box, answered_expiry=box.wish_expiry.id, expiry_code=failure.code)
    return replace(box, missing_since=missing, step_at=now, step_tries=0)
