"""Faults of reconcile, idle, secrets and the audit trail."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sandbox_router.lifecycle import advance, sandbox_agenda, sandbox_life, sandbox_moves
from sandbox_router.model.record import Outcome, Wish
from sandbox_router.model.sandbox import Sandbox, State
from sandbox_router.reconcile.compare import Verdict, compare
from sandbox_router.reconcile.pool import Reconcile, Report
from sandbox_router.store import Store, log
from sandbox_router.store import items as spelled
from sandbox_router.table import Test, Update, when
from tests.sim import test_idle, test_life, test_reconcile
from tests.sim.mutants.seeding import Patch, grid, mutant


@mutant("I13", test_reconcile.test_only_what_is_provably_ours_and_nobodys_is_destroyed)
def _an_orphan_has_no_grace(patch: Patch) -> None:
    patch.setattr("sandbox_router.reconcile.pool.ripe", lambda *_: True)


@mutant("I13", test_reconcile.test_only_what_is_provably_ours_and_nobodys_is_destroyed)
def _an_orphan_is_destroyed_at_first_sight(patch: Patch) -> None:
    real = Store.get

    def get(self: Store, key: tuple[str, str]) -> Mapping[str, object] | None:
        return {"first_seen": 0} if key[0] == "SEEN" else real(self, key)

    patch.setattr("sandbox_router.reconcile.pool.sighting_key", lambda *_: ("SEEN", "A"))
    patch.setattr(Store, "get", get)


@mutant("I12", test_reconcile.test_only_what_is_provably_ours_and_nobodys_is_destroyed)
def _a_half_tagged_instance_is_ours(patch: Patch) -> None:
    mine = lambda deployment, tags: 1 if "constal-sandbox-id" in tags else None  # noqa: E731
    patch.setattr("sandbox_router.reconcile.compare.attempt_of", mine)


@mutant(
    "I12", test_reconcile.test_a_clone_of_a_running_sandbox_is_reported_and_ends_with_its_record
)
def _a_clone_is_an_orphan(patch: Patch) -> None:
    def compared(*rest: Any) -> Verdict:
        verdict = compare(*rest)
        return Verdict.ORPHAN if verdict is Verdict.CLONE else verdict

    patch.setattr("sandbox_router.reconcile.pool.compare", compared)


@mutant("I14", test_reconcile.test_an_empty_list_never_makes_a_sandbox_lost)
def _what_a_list_does_not_show_is_gone(patch: Patch) -> None:
    real = Reconcile.pool

    def passed(self: Reconcile, pool_id: str) -> Report:
        report = real(self, pool_id)
        for item in self._store._table.items():  # type: ignore[attr-defined]
            if item["sk"] == "A" and item.get("state") == "running" and not report.verdicts:
                box = self._store.load(Sandbox, str(item["id"]))
                assert box is not None
                assert box.server is not None
                gone = {"outcome": Outcome.GONE.value, "ended_at": 0}
                self._store._write(Update(spelled.attempt_key(box.id, 1), set=gone))
                self._store.wish(box, "wish_look", Wish("w", 0), log.Entry(0, "x", "running"))
                self._advance(box.id)
        return report

    patch.setattr("tests.sim.process.TickingTable.items", _items, raising=False)
    patch.setattr(Reconcile, "pool", passed)


def _items(self: Any) -> Any:
    return self._table.items()


@mutant("I9", test_reconcile.test_reconcile_alone_ends_an_expired_sandbox)
def _reconcile_only_sends_a_message(patch: Patch) -> None:
    patch.setattr(Reconcile, "_wake", lambda self, provider, found: None)


@mutant("I19", test_idle.test_a_use_between_decision_and_save_prevents_the_end)
def _idle_is_decided_without_seeing_a_use(patch: Patch) -> None:
    def touch(self: Store, box: Sandbox) -> None:
        used = {"active_at": self._clock.now()}
        here = when(Test("pk", "exists"))
        self._write(Update(spelled.record_key(box.id), set=used, when=here))

    patch.setattr(Store, "touch", touch)


@mutant("I19", grid("power", 29, power="pause"))
def _an_early_message_ends_a_sandbox(patch: Patch) -> None:
    real = sandbox_agenda.decide

    def early(box: Sandbox, now: int, *, armed: bool) -> Any:
        running = box.state is State.RUNNING
        return real(box, box.expires_at if running else now, armed=armed)

    patch.setattr(sandbox_agenda, "decide", early)


@mutant("secrets", test_life.test_without_waiting_no_provider_is_called_in_process)
def _what_was_sealed_is_kept(patch: Patch) -> None:
    for module in (sandbox_moves, sandbox_life):
        real = module.shifted
        kept = lambda box, *rest, real=real: replace(real(box, *rest), sealed=box.sealed)  # noqa: E731
        patch.setattr(module, "shifted", kept)


@mutant("I39", grid("creates", crash=0))
def _a_state_change_leaves_no_entry(patch: Patch) -> None:
    real = log.Entry
    patch.setattr(advance, "Entry", lambda at, event, *r, **m: real(at, "x" + event, *r, **m))


@mutant("I39", grid("rivals", 61, rival="destroy", crash=0))
def _what_was_not_saved_is_told_all_the_same(patch: Patch) -> None:
    real = advance.Lifecycle._rebase

    def rebase(self: advance.Lifecycle[Any], work: advance.Work[Any]) -> bool:
        told = list(work.entries)
        more = real(self, work)
        work.entries[:0] = told
        return more

    patch.setattr(advance.Lifecycle, "_rebase", rebase)


@mutant(
    "truth", test_reconcile.test_what_the_provider_stopped_is_paused_and_the_record_looked_itself
)
def _what_a_vendor_stopped_is_not_looked_at(patch: Patch) -> None:
    def compared(*rest: Any) -> Verdict:
        verdict = compare(*rest)
        return Verdict.FINE if verdict is Verdict.CHANGED else verdict

    patch.setattr("sandbox_router.reconcile.pool.compare", compared)
