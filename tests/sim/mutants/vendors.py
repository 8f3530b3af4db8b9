"""Faults about vendors that say one thing and do another."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from sandbox_router.lifecycle import life, step
from sandbox_router.model.failure import Conflicted, ProviderFailure
from sandbox_router.model.record import Outcome
from sandbox_router.reconcile import pool
from tests.sim.grid import VENDOR_FAULTS
from tests.sim.mutants.seeding import Patch, grid, mutant


@mutant("I16", grid("vendors", 37, quirk="stiff", destroy=0, crash=0))
def _what_cannot_be_destroyed_now_counts_as_gone(patch: Patch) -> None:
    real = life.Life.failed

    def failed(self: Any, todo: Any, call: life.Call[Any], failure: ProviderFailure) -> Any:
        if isinstance(failure, Conflicted) and call.attempt.instance_id:
            gone = replace(call.attempt, outcome=Outcome.GONE, ended_at=0)
            return call.box.with_attempt(gone)
        return real(self, todo, call, failure)

    patch.setattr(life.Life, "failed", failed)


@mutant("I16", grid("vendors", 37, faults="destroy:ending", destroy=0, crash=0))
def _an_end_that_was_accepted_counts_as_one(patch: Patch) -> None:
    real = life.Life._destroy

    def destroy(self: Any, call: life.Call[Any]) -> Any:
        box = real(self, call)
        told = box.attempts[call.attempt.n - 1]
        return box.with_attempt(replace(told, outcome=Outcome.GONE, ended_at=0))

    patch.setattr(life.Life, "_destroy", destroy)


@mutant("I9", grid("lists", 3, quirk="pages", faults="", crash=0))
def _only_the_first_page_is_read(patch: Patch) -> None:
    patch.setattr(pool, "PAGES", 1)


@mutant("I16", grid("vendors", 3, quirk="ghosts", crash=0, destroy=0))
def _a_list_brings_back_the_dead(patch: Patch) -> None:
    real = pool.Reconcile._tell

    def tell(self: pool.Reconcile, provider: Any, found: Any) -> None:
        blind = SimpleNamespace(get=lambda instance_id: found.instance)
        real(self, blind, found)

    patch.setattr(pool.Reconcile, "_tell", tell)


@mutant("I28", grid("vendors", 7, quirk="stiff", faults=VENDOR_FAULTS[0], alpha="ok", crash=0))
def _who_does_not_answer_is_asked_again_at_once(patch: Patch) -> None:
    real = life.Life.failed

    def failed(self: Any, todo: Any, call: life.Call[Any], failure: ProviderFailure) -> Any:
        box = real(self, todo, call, failure)
        waits = isinstance(todo, step.AwaitReady)
        return replace(box, step_at=self.clock.now()) if waits else box

    patch.setattr(life.Life, "failed", failed)
