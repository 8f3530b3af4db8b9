"""Faults of keys and answers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sandbox_router.lifecycle import advance, once
from sandbox_router.model.sandbox import Sandbox, State
from sandbox_router.router import Router
from sandbox_router.store import Change, Store
from sandbox_router.store import items as spelled
from sandbox_router.store import store as stored
from sandbox_router.table import ALWAYS
from tests.sim import stories
from tests.sim.mutants.seeding import Patch, grid, mutant


@mutant("I4", stories.another_body_under_a_key_is_refused_at_every_stage)
def _bodies_are_not_compared(patch: Patch) -> None:
    patch.setattr("hmac.compare_digest", lambda a, b: True)


@mutant("I6", stories.two_tenants_share_a_key_and_nothing_else)
def _a_key_is_everybodys(patch: Patch) -> None:
    real = Store.key
    one = lambda tenant, key_hash: (f"IDEM#all#{key_hash}", "A")  # noqa: E731
    for module in (spelled, stored):
        patch.setattr(module, "idempotency_key", one)
    patch.setattr(Store, "key", lambda self, tenant, key_hash: real(self, "all", key_hash))


@mutant("I6", stories.two_tenants_share_a_key_and_nothing_else)
def _a_sandbox_is_everybodys(patch: Patch) -> None:
    patch.setattr(Router, "_seen", lambda self, tenant, id_: self._store.load(Sandbox, id_))


@mutant("I2", stories.a_replay_is_the_first_answer_whatever_has_happened_since)
def _a_replay_reads_the_record_again(patch: Patch) -> None:
    real = once.Once._replay

    def replay(self: once.Once[Any], *rest: Any) -> once.Reply:
        reply = real(self, *rest)
        box = self._store.load(Sandbox, reply.record_id or "")
        return reply if box is None else replace(reply, body=self._reply(box, None).body)

    patch.setattr(once.Once, "_replay", replay)


@mutant("I5", stories.a_replay_is_the_first_answer_whatever_has_happened_since)
def _a_replay_looks_at_the_provider(patch: Patch) -> None:
    real = once.Once._replay

    def replay(self: once.Once[Any], *rest: Any) -> once.Reply:
        reply = real(self, *rest)
        box = self._store.load(Sandbox, reply.record_id or "")
        if box is not None and box.server is not None:
            provider: Any = self._lifecycle.pools.provider(box.server.pool_id)
            provider.get(box.server.instance_id)
        return reply

    patch.setattr(once.Once, "_replay", replay)


@mutant("I1", grid("creates", crash=0, alpha="capacity", beta="capacity", retry=0))
def _a_settled_key_is_freed(patch: Patch) -> None:
    free = lambda life, before, after: after.state is State.RUNNING  # noqa: E731
    patch.setattr(advance, "frees_key", free)


@mutant("I1", stories.a_key_that_was_freed_and_taken_is_not_freed_again)
def _a_key_is_freed_for_another_sandbox(patch: Patch) -> None:
    patch.setattr(spelled, "_owned", lambda box: ALWAYS)


@mutant("I1", grid("rivals", 61, rival="31 client", crash=0))
def _the_first_settled_answer_is_not_kept(patch: Patch) -> None:
    patch.setattr(advance, "first_result", lambda life, before, after, now: None)
    patch.setattr(Change, "result", None)
