"""Faults of attempts: what is stored before whom is asked, and how often."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from sandbox_router.lifecycle import advance, attempts, life, sandbox_agenda, sandbox_life, step
from sandbox_router.model.failure import Permission, ProviderFailure, Unknown
from sandbox_router.model.record import Attempt, Outcome
from sandbox_router.model.sandbox import Sandbox
from sandbox_router.ports import Order
from sandbox_router.store import Store
from tests.sim import stories, test_life
from tests.sim.mutants.seeding import Patch, grid, mutant


@mutant("I7", grid("creates", crash=0))
def _the_record_is_written_after_the_create(patch: Patch) -> None:
    patch.setattr(Store, "insert", lambda self, box, entry: None)


@mutant("I7", grid("creates", crash=0, alpha="capacity"))
def _the_next_intent_is_not_saved_first(patch: Patch) -> None:
    patch.setattr(advance.Work, "dirty", property(lambda work: False))


@mutant("I3 I11", grid("creates", idempotent=False, retry=31))
def _crashed_intents_are_forgotten(patch: Patch) -> None:
    gone = lambda attempt, *_: replace(attempt, outcome=Outcome.GONE, ended_at=0)  # noqa: E731
    patch.setattr(attempts, "doubted", gone)


@mutant("I8 I11", grid("creates", alpha="late", idempotent=False))
def _an_unknown_attempt_is_forgotten_on_failover(patch: Patch) -> None:
    real = step.loose

    def loose(box: Sandbox, attempt: Attempt) -> Iterator[Any]:
        if attempt.outcome is not Outcome.UNKNOWN:
            yield from real(box, attempt)

    patch.setattr(sandbox_agenda, "loose", loose)
    patch.setattr(Attempt, "open", property(lambda a: a.outcome is Outcome.CREATED))


@mutant("I23", grid("creates", alpha="lost", idempotent=False))
def _a_lost_answer_is_a_refusal(patch: Patch) -> None:
    patch.setattr(life, "Refused", ProviderFailure)
    patch.setattr(Unknown, "elsewhere", True)


@mutant("I22", grid("creates", alpha="forbidden"))
def _another_pool_is_asked_after_a_403(patch: Patch) -> None:
    patch.setattr(Permission, "elsewhere", True)


@mutant("I3", grid("creates", alpha="lost", idempotent=True))
def _asked_again_under_a_new_name(patch: Patch) -> None:
    names, real = itertools.count(), sandbox_life.SandboxLife.order

    def order(self: sandbox_life.SandboxLife, call: life.Call[Sandbox]) -> Order:
        made = real(self, call)
        return replace(made, identity=f"x{next(names)}") if call.attempt.asked else made

    patch.setattr(sandbox_life.SandboxLife, "order", order)


@mutant("I3", grid("creates", 1, idempotent=False, retry=31, alpha="ok", crash=6))
def _a_takeover_starts_again_instead_of_looking(patch: Patch) -> None:
    real = sandbox_agenda._starting

    def starting(box: Sandbox, armed: bool) -> Iterator[Any]:
        current = box.current
        if current is not None and current.outcome is Outcome.INTENDED:
            yield (0, step.Ask(current.n))
        else:
            yield from real(box, armed)

    patch.setattr(sandbox_agenda, "_starting", starting)


@mutant("I3 I8", grid("creates", alpha="lost capacity"))
def _a_refused_repeat_settles_the_first_ask(patch: Patch) -> None:
    real = attempts.doubted
    patch.setattr(attempts, "doubted", lambda a, *rest: replace(real(a, *rest), asked=0))
    patch.setattr(life, "doubted", lambda a, *rest: replace(real(a, *rest), asked=0))


@mutant("I24", grid("creates", alpha="capacity", crash=0))
def _the_first_pool_is_asked_twice_in_a_pass(patch: Patch) -> None:
    real = sandbox_agenda._try
    patch.setattr(sandbox_agenda, "_try", lambda box, place, *rest: real(box, 0, *rest))


@mutant("I28", test_life.test_three_passes_then_503_and_the_key_is_free_again)
def _passes_without_end(patch: Patch) -> None:
    patch.setattr(sandbox_agenda, "MAX_ROUNDS", 30)
    patch.setattr(sandbox_agenda, "BACKOFF_MS", 1)


@mutant("I28", stories.an_unknown_create_is_asked_twice_at_most)
def _asked_again_and_again(patch: Patch) -> None:
    patch.setattr(sandbox_agenda, "MAX_ASKS", 50)
