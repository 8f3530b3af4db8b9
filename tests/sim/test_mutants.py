"""The simulation bites: a small part of the grid finds each seeded fault of the life cycle."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from sandbox_router.lifecycle import advance, decide, moves, steps
from sandbox_router.model.failure import Permission
from sandbox_router.model.sandbox import Attempt, Outcome, Sandbox
from sandbox_router.ports import Order
from tests.sim.scenario import everything, run

Patch = Callable[[pytest.MonkeyPatch], None]


def _crashed_intents_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    def gone(attempt: Attempt, *_: object) -> Attempt:
        return replace(attempt, outcome=Outcome.GONE, ended_at=0)

    patch.setattr(moves, "doubted", gone)


def _unknown_attempts_are_forgotten_on_failover(patch: pytest.MonkeyPatch) -> None:
    real = decide._loose

    def loose(box: Sandbox, attempt: Attempt) -> Iterator[Any]:
        if attempt.outcome is not Outcome.UNKNOWN:
            yield from real(box, attempt)

    patch.setattr(decide, "_loose", loose)
    patch.setattr(Attempt, "open", property(lambda a: a.outcome in (Outcome.CREATED,)))


def _failover_after_a_permission_refusal(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Permission, "elsewhere", True)


def _destroyed_without_confirmation(patch: pytest.MonkeyPatch) -> None:
    def destroy(self: steps.Performer, call: steps.Call) -> Sandbox:
        gone = replace(call.attempt, outcome=Outcome.GONE, ended_at=0)
        return call.box.with_attempt(gone)

    patch.setattr(steps.Performer, "_destroy", destroy)


def _expiry_is_never_due(patch: pytest.MonkeyPatch) -> None:
    def ends(box: Sandbox) -> Iterator[Any]:
        return
        yield

    patch.setattr(decide, "_ends", ends)


def _the_intent_is_not_saved_first(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(advance.Work, "dirty", property(lambda work: False))


def _no_due_date_after_release(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(advance, "due", lambda box, armed: None)


def _recreate_under_a_new_name(patch: pytest.MonkeyPatch) -> None:
    names = itertools.count()

    def order(self: steps.Performer, call: steps.Call) -> Order:
        return replace(real(self, call), identity=f"x{next(names)}")

    real = steps.Performer._order
    patch.setattr(steps.Performer, "_order", order)


def _a_refused_repeat_settles_the_first_ask(patch: pytest.MonkeyPatch) -> None:
    real = moves.doubted
    patch.setattr(moves, "doubted", lambda a, *rest: replace(real(a, *rest), asked=0))


MUTANTS: tuple[Patch, ...] = (
    _crashed_intents_are_forgotten,
    _unknown_attempts_are_forgotten_on_failover,
    _failover_after_a_permission_refusal,
    _destroyed_without_confirmation,
    _expiry_is_never_due,
    _the_intent_is_not_saved_first,
    _no_due_date_after_release,
    _recreate_under_a_new_name,
    _a_refused_repeat_settles_the_first_ask,
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.__name__.strip("_"))
def test_the_grid_kills_the_mutant(mutant: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    with pytest.raises(AssertionError):
        _run_some()


def _run_some() -> None:
    for scenario in list(everything())[::97]:
        run(scenario)
