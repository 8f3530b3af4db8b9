"""Faults of ends: deadlines, nets, destroys, debts."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from sandbox_router.lifecycle import advance, life, sandbox_agenda, sandbox_life, step
from sandbox_router.model.record import Attempt, Outcome
from sandbox_router.model.sandbox import Sandbox, State
from sandbox_router.store import Store
from sandbox_router.store import items as spelled
from sandbox_router.table import Put
from tests.sim import stories, test_faults
from tests.sim.mutants.seeding import Patch, grid, mutant


@mutant("I9", grid("creates", crash=0))
def _expiry_is_never_due(patch: Patch) -> None:
    def ends(box: Sandbox) -> Iterator[Any]:
        if box.wish_destroy is not None:
            yield (box.wish_destroy.at, step.Shift(to=State.DESTROYING, reason="client"))

    patch.setattr(sandbox_agenda, "_ends", ends)


@mutant("I9", grid("nets", 29, nets="sweep"))
def _expiry_is_only_a_message(patch: Patch) -> None:
    real = advance.Lifecycle._store

    def keep(self: advance.Lifecycle[Any], work: advance.Work[Any], after: Sandbox) -> None:
        real(self, work, replace(after, due_at=None))

    patch.setattr(advance.Lifecycle, "_store", keep)


@mutant("I9", grid("creates", crash=0))
def _no_due_date_after_release(patch: Patch) -> None:
    patch.setattr(sandbox_agenda, "due", lambda box, armed: None)


@mutant("I9", grid("creates", crash=0))
def _nobody_is_woken_for_a_near_deadline(patch: Patch) -> None:
    patch.setattr(advance.Lifecycle, "_wake", lambda self, box, at: None)


@mutant("I9", stories.a_guard_moves_with_the_deadline)
def _the_guard_is_not_moved_with_an_extension(patch: Patch) -> None:
    patch.setattr(spelled, "guard_put", lambda box: Put(("NONE", "A"), {}))


@mutant("I9", stories.a_guard_comes_again_until_it_is_over)
def _a_guard_comes_only_once(patch: Patch) -> None:
    patch.setattr(Store, "guard", lambda self, sandbox_id: True)


@mutant("I9", grid("nets", 29, nets="provider"))
def _the_provider_is_given_no_limit(patch: Patch) -> None:
    real = sandbox_life.SandboxLife.order
    order = lambda self, call: replace(real(self, call), lifetime_seconds=86_400)  # noqa: E731
    patch.setattr(sandbox_life.SandboxLife, "order", order)


@mutant("I16", grid("destroys", crash=0, faults="destroy:cut"))
def _destroyed_without_asking(patch: Patch) -> None:
    def destroy(self: sandbox_life.SandboxLife, call: life.Call[Sandbox]) -> Sandbox:
        return call.box.with_attempt(replace(call.attempt, outcome=Outcome.GONE, ended_at=0))

    patch.setattr(sandbox_life.SandboxLife, "_destroy", destroy)


@mutant("I16", grid("destroys", crash=0, faults="destroy:kept destroy:kept"))
def _destroyed_without_looking(patch: Patch) -> None:
    def destroy(self: sandbox_life.SandboxLife, call: life.Call[Sandbox]) -> Sandbox:
        call.maker.destroy(call.instance_id)
        now = self.clock.now()
        return call.box.with_attempt(replace(call.attempt, outcome=Outcome.GONE, ended_at=now))

    patch.setattr(sandbox_life.SandboxLife, "_destroy", destroy)


@mutant("I16", grid("destroys", crash=0, faults="destroy:cut"))
def _destroyed_while_one_is_known_alive(patch: Patch) -> None:
    real = sandbox_agenda._destroying

    def destroying(box: Sandbox) -> Iterator[Any]:
        yield from real(box)
        yield (0, step.Shift(to=State.DESTROYED))

    patch.setattr(sandbox_agenda, "_destroying", destroying)


@mutant("I8 I11", grid("destroys", 29, alpha="late", destroy=0, idempotent=False))
def _destroyed_and_never_looked_at_again(patch: Patch) -> None:
    real = step.loose

    def loose(box: Sandbox, attempt: Attempt) -> Iterator[Any]:
        if not box.state.terminal:
            yield from real(box, attempt)

    patch.setattr(sandbox_agenda, "loose", loose)


@mutant("I11", grid("creates", alpha="late", idempotent=False, crash=0))
def _a_debt_is_closed_at_the_first_look(patch: Patch) -> None:
    real = sandbox_life.SandboxLife._find

    def find(self: sandbox_life.SandboxLife, call: life.Call[Sandbox]) -> Sandbox:
        return real(self, replace(call, attempt=replace(call.attempt, window_until=0, lag_ms=0)))

    patch.setattr(sandbox_life.SandboxLife, "_find", find)


@mutant("I18", grid("destroys", 29, destroy=0, faults=""))
def _a_wish_is_not_due(patch: Patch) -> None:
    patch.setattr(Store, "_due", lambda self, sandbox_id: {})
    patch.setattr(advance.Lifecycle, "advance", _only_when_due)


_real_advance = advance.Lifecycle.advance


def _only_when_due(self: advance.Lifecycle[Any], sandbox_id: str, **more: Any) -> Any:
    box = self.store.load(Sandbox, sandbox_id)
    if box is None or box.due_at is None or box.due_at > self.clock.now():
        return box and self._work(box, None, 0)
    return _real_advance(self, sandbox_id, **more)


@mutant("I15", grid("creates", 7, alpha="cut", beta="forbidden", idempotent=False, crash=0))
def _what_failed_can_be_destroyed(patch: Patch) -> None:
    real = sandbox_agenda.agenda

    def agenda(box: Sandbox, *, armed: bool) -> Iterator[Any]:
        yield from real(box, armed=armed)
        if box.state is State.FAILED and not box.settled:
            yield (box.expires_at, step.Shift(to=State.DESTROYING, reason="expired"))

    patch.setattr(sandbox_agenda, "agenda", agenda)


@mutant("I14", stories.one_look_that_finds_nothing_loses_no_sandbox)
def _one_look_loses_a_sandbox(patch: Patch) -> None:
    real = sandbox_life.SandboxLife._look

    def look(self: sandbox_life.SandboxLife, call: life.Call[Sandbox]) -> Sandbox:
        sure = replace(call.box, missing_since=0) if call.box.missing_since is None else call.box
        return real(self, replace(call, box=sure))

    patch.setattr(sandbox_life.SandboxLife, "_look", look)


@mutant(
    "I8 I14",
    test_faults.test_one_look_that_does_not_find_a_booting_instance_is_no_proof_that_it_is_gone,
)
def _one_look_ends_a_booting_instance(patch: Patch) -> None:
    real = life._unready
    sure = lambda box, *rest: real(replace(box, missing_since=0), *rest)  # noqa: E731
    patch.setattr(life, "_unready", sure)


@mutant("I21", grid("power", 101, boots_ms=1_800))
def _running_before_the_provider_is_ready(patch: Patch) -> None:
    real = sandbox_life.SandboxLife.known

    def known(self: sandbox_life.SandboxLife, *rest: Any) -> Sandbox:
        box = real(self, *rest)
        assert box.current is not None
        return box.with_attempt(replace(box.current, ready=True))

    patch.setattr(sandbox_life.SandboxLife, "known", known)


@mutant("I27", grid("creates", alpha="capacity", crash=0))
def _later_calls_go_to_the_first_pool(patch: Patch) -> None:
    real = sandbox_life.SandboxLife.perform

    def perform(self: Any, todo: Any, box: Sandbox, *rest: Any) -> Any:
        if isinstance(todo, step.Ask):
            return real(self, todo, box, *rest)
        first, astray = self.pools.provider(box.route[0].pool_id), copy(self)
        astray.pools = SimpleNamespace(pool=self.pools.pool, provider=lambda pool_id: first)
        return real(astray, todo, box, *rest)

    patch.setattr(sandbox_life.SandboxLife, "perform", perform)
