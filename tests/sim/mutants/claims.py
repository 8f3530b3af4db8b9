"""Faults of claims, fences and wishes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sandbox_router.lifecycle import advance, life, once, sandbox_life
from sandbox_router.model.sandbox import Sandbox
from sandbox_router.store import Store
from sandbox_router.store import items as spelled
from sandbox_router.store import store as stored
from sandbox_router.store.codec import encode
from sandbox_router.table import ALWAYS, Condition, Update
from tests.sim import stories, test_faults, test_race
from tests.sim.mutants.seeding import Patch, grid, mutant


@mutant("I17", grid("rivals", 1, crash=0, rival="worker", alpha="ok", idempotent=False, wait=0.0))
def _a_claim_is_a_read_and_then_a_write(patch: Patch) -> None:
    def claim(self: Store, box: Sandbox, lease_ms: int) -> Sandbox | None:
        now = self._clock.now()
        fresh = self.load(Sandbox, box.id)
        if fresh is None or fresh.epoch != box.epoch or fresh.lease_until > now:
            return None
        mine = replace(fresh, epoch=fresh.epoch + 1, nonce="n", lease_until=now + lease_ms)
        self._write(spelled.record_update(fresh, mine, ALWAYS))
        return mine

    patch.setattr(Store, "claim", claim)


def _without(patch: Patch, attr: str) -> None:
    """Saves do not look at this attribute of the record."""
    real = Store._commit

    def commit(self: Store, after: Sandbox, writes: list[Any]) -> None:
        held = [tuple(t for t in c if t.attr != attr) for c in writes[0].when]
        real(self, after, [replace(writes[0], when=tuple(held)), *writes[1:]])

    patch.setattr(Store, "_commit", commit)


@mutant("I17", grid("rivals", 61, rival="31 client", crash=0))
def _a_late_writer_is_not_fenced(patch: Patch) -> None:
    _without(patch, "epoch")


@mutant("I17 I18", grid("rivals", 7, rival="destroy", nets="sweep", crash=0, alpha="ok"))
def _news_is_ignored_at_a_save(patch: Patch) -> None:
    _without(patch, "news")


@mutant("I18", grid("rivals", 7, rival="destroy", nets="sweep", crash=0, alpha="ok"))
def _a_wish_is_no_news(patch: Patch) -> None:
    real = Store._change
    patch.setattr(Store, "_change", lambda s, update, e: real(s, replace(update, add={}), e))


@mutant("I17", stories.labels_written_during_a_create_are_kept)
def _saves_put_whole_records(patch: Patch) -> None:
    def whole(before: Any, after: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
        item = encode(after)
        item.pop("attempts", None)
        return item, ()

    patch.setattr(spelled, "_changes", whole)


@mutant("I3", grid("rivals", 61, rival="31 client"))
def _a_loser_deletes_by_shared_name(patch: Patch) -> None:
    real = advance.Lifecycle._leave

    def leave(self: advance.Lifecycle[Any], work: advance.Work[Any]) -> bool:
        for attempt in work.box.attempts:
            if attempt.instance_id:
                self.pools.provider(attempt.pool_id).destroy(attempt.instance_id)
        return real(self, work)

    patch.setattr(advance.Lifecycle, "_leave", leave)


@mutant("I10", grid("creates", retry=31, alpha="ok"))
def _a_takeover_sets_the_deadline_anew(patch: Patch) -> None:
    real = Store.claim

    def claim(self: Store, box: Sandbox, lease_ms: int) -> Sandbox | None:
        mine = real(self, box, lease_ms)
        ends = self._clock.now() + box.spec.ttl_seconds * 1000
        return None if mine is None else replace(mine, expires_at=ends)

    patch.setattr(Store, "claim", claim)


@mutant("I10", grid("power", 29, power="extend"))
def _an_extension_is_longer_than_asked(patch: Patch) -> None:
    extend = sandbox_life.SandboxLife._extend

    def longer(self: sandbox_life.SandboxLife, call: life.Call[Sandbox]) -> Sandbox:
        box = extend(self, call)
        return replace(box, expires_at=box.expires_at + 60_000)

    patch.setattr(sandbox_life.SandboxLife, "_extend", longer)


@mutant("I17", grid("creates", crash=0))
def _a_lease_ends_at_once(patch: Patch) -> None:
    patch.setattr(advance, "LEASE_MS", 0)
    patch.setattr(once, "LEASE_MS", 0)


@mutant("I16", grid("rivals", 7, rival="31 destroy", crash=0, alpha="ok"))
def _a_loser_tells_of_what_was_destroyed_since(patch: Patch) -> None:
    real = Store.tell
    loose = lambda self, box, attempt, again=True: real(self, box, attempt, again=True)  # noqa: E731
    patch.setattr(Store, "tell", loose)


@mutant("I19", test_faults.test_a_message_about_a_record_that_is_held_waits_until_the_lease_ends)
def _a_message_about_a_held_record_comes_back_at_once(patch: Patch) -> None:
    real = advance.Lifecycle._wake

    def wake(self: advance.Lifecycle[Any], box: Sandbox, at: int | None) -> None:
        held = at is not None and at == box.lease_until
        real(self, box, box.due_at if held else at)

    patch.setattr(advance.Lifecycle, "_wake", wake)


def _races() -> None:
    for seed in range(50, 70):
        test_race.raced(seed)


@mutant("I2 I17", _races)
def _a_claim_does_not_see_who_came_and_went_since_the_read(patch: Patch) -> None:
    real = spelled.record_update

    def update(before: Sandbox, after: Sandbox, held: Condition) -> Update:
        blind = [
            tuple(t for t in tests if (t.attr, t.op) != ("lease_until", "=")) for tests in held
        ]
        return real(before, after, tuple(blind))

    patch.setattr(stored, "record_update", update)
