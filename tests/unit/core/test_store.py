"""The store on a sound table: what each write needs, and what it leaves alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sandbox_router.model.record import Outcome
from sandbox_router.model.sandbox import Sandbox, State
from sandbox_router.store import Change, ClaimLost, Entry, News
from sandbox_router.store.items import GUARD_SECONDS, record_update
from sandbox_router.store.log import DAY, DAYS
from sandbox_router.table import TTL
from tests.unit.core.build import T, attempt, box, running, s, wish
from tests.unit.core.stored import CREATED, Shelf, result

SECOND = T // 1000


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


def asked(at: int = T) -> Entry:
    return Entry(at, "wish.client", "running")


def test_a_new_sandbox_is_record_attempt_key_guard_and_entry_and_is_due(shelf: Shelf) -> None:
    made = shelf.inserted()
    keys = {(i["pk"], i["sk"]) for i in shelf.memory.items()}
    entry = f"{T:015d}#000001c0000"
    assert keys == {
        *(("SBX#sbx-a", "A"), ("SBX#sbx-a", "B#001"), ("GUARD#sbx-a", "A")),
        *(("IDEM#acme#k", "A"), ("LOG#sbx-a", entry)),
    }
    assert shelf.other.load(Sandbox, "sbx-a") == made
    assert shelf.due() == ["sbx-a"]


def test_a_key_outlives_the_deadline_by_a_day_and_the_guard_by_ten_minutes(shelf: Shelf) -> None:
    shelf.inserted()
    assert shelf.item("IDEM#acme#k")[TTL] == SECOND + 3600 + DAY
    assert shelf.item("GUARD#sbx-a")[TTL] == SECOND + 3600 + GUARD_SECONDS


def test_a_taken_key_shows_its_owner_and_nothing_is_stored(shelf: Shelf) -> None:
    shelf.inserted()
    before = shelf.memory.items()
    late = box(attempt(epoch=1), id="sbx-b", key_hash="k", request_hash="other")
    owner = shelf.store.insert(late, CREATED)
    assert owner is not None
    assert (owner.record_id, owner.request_hash, owner.result) == ("sbx-a", "h", None)
    assert shelf.memory.items() == before


def test_the_same_key_of_another_tenant_is_another_key(shelf: Shelf) -> None:
    shelf.inserted()
    other = box(id="sbx-b", tenant="else", key_hash="k", request_hash="h")
    assert shelf.store.insert(other, CREATED) is None
    found = shelf.store.key("else", "k")
    assert found is not None
    assert found.record_id == "sbx-b"


def test_an_expired_key_is_free_and_forgotten(shelf: Shelf) -> None:
    shelf.inserted()
    end = s(3600) + DAY * 1000
    late = box(id="sbx-b", key_hash="k", request_hash="h2", created_at=end, expires_at=end)
    shelf.clock.at(end)
    assert shelf.store.insert(late, CREATED) is not None
    shelf.clock.at(end + 1000)
    assert shelf.store.key("acme", "k") is None
    assert shelf.store.insert(late, CREATED) is None


def test_what_is_not_there_is_none(shelf: Shelf) -> None:
    assert shelf.store.load(Sandbox, "sbx-a") is None
    assert shelf.store.key("acme", "k") is None


def test_a_record_is_read_whole_however_short_the_pages(shelf: Shelf) -> None:
    many = tuple(attempt(n) for n in range(1, 60))
    shelf.inserted(attempts=many)
    shelf.weak.short = 1.0
    read = shelf.store.load(Sandbox, "sbx-a")
    assert read is not None
    assert read.attempts == many


def test_a_claim_counts_up_names_its_holder_and_is_due_at_its_end(shelf: Shelf) -> None:
    held = shelf.claimed()
    assert (held.epoch, held.lease_until, held.due_at) == (2, s(30), s(30))
    assert held.nonce != "n"
    assert shelf.other.load(Sandbox, "sbx-a") == held


@pytest.mark.parametrize("lease", [1, 30_000, 900_000])
def test_a_record_that_is_held_cannot_be_claimed_until_the_very_end_of_its_lease(
    shelf: Shelf, lease: int
) -> None:
    first = shelf.other.claim(shelf.inserted(), lease)
    assert first is not None
    shelf.clock.at(T + lease - 1)
    assert shelf.store.claim(first, 30_000) is None
    shelf.clock.at(T + lease)
    second = shelf.store.claim(first, 30_000)
    assert second is not None
    assert second.epoch == first.epoch + 1


def test_a_record_that_was_claimed_or_told_news_since_it_was_read_is_not_claimed(
    shelf: Shelf,
) -> None:
    read = shelf.inserted()
    shelf.other.wish(read, "wish_destroy", wish(), asked())
    assert shelf.store.claim(read, 30_000) is None
    fresh = shelf.other.load(Sandbox, "sbx-a")
    assert fresh is not None
    assert shelf.other.claim(fresh, 0) is not None
    assert shelf.store.claim(fresh, 30_000) is None


def test_a_save_under_an_earlier_claim_writes_nothing(shelf: Shelf) -> None:
    late = shelf.claimed()
    shelf.clock.at(s(30))
    shelf.other.claim(late, 30_000)
    before = shelf.memory.items()
    with pytest.raises(ClaimLost):
        shelf.saved(late, state=State.RUNNING)
    assert shelf.memory.items() == before


def test_a_save_that_has_not_seen_a_wish_writes_nothing(shelf: Shelf) -> None:
    held = shelf.claimed()
    shelf.other.wish(held, "wish_destroy", wish(), asked())
    before = shelf.memory.items()
    with pytest.raises(News):
        shelf.saved(held, state=State.RUNNING)
    assert shelf.memory.items() == before


def test_a_save_of_a_record_that_has_vanished_says_the_claim_is_lost(shelf: Shelf) -> None:
    held = shelf.claimed()
    shelf.memory.replace(("SBX#sbx-a", "A"), None)
    with pytest.raises(ClaimLost):
        shelf.saved(held, state=State.RUNNING)


def test_a_wish_needs_no_claim_and_makes_the_record_due_now(shelf: Shelf) -> None:
    held = shelf.claimed()
    shelf.clock.at(s(1))
    shelf.store.wish(held, "wish_destroy", wish("client", s(1)), asked(s(1)))
    read = shelf.other.load(Sandbox, "sbx-a")
    assert read == replace(held, wish_destroy=wish("client", s(1)), news=1, due_at=s(1))
    assert [e["event"] for e in shelf.log()] == ["created", "wish.client"]


@pytest.mark.parametrize("attr", ["wish_destroy", "wish_power", "wish_expiry", "wish_look"])
def test_a_later_decision_leaves_every_wish_as_it_is(shelf: Shelf, attr: str) -> None:
    shelf.claimed()
    held = shelf.other.load(Sandbox, "sbx-a")
    assert held is not None
    shelf.store.wish(held, attr, wish(), asked())
    seen = shelf.other.load(Sandbox, "sbx-a")
    assert seen is not None
    shelf.saved(seen, state=State.RUNNING, due_at=s(9), serving=1)
    read = shelf.other.load(Sandbox, "sbx-a")
    assert read is not None
    assert getattr(read, attr) == wish()
    assert (read.state, read.news) == (State.RUNNING, 1)


def test_a_decision_writes_no_wish_no_label_and_no_count_of_news(shelf: Shelf) -> None:
    before = running(wish_power=wish("pause"), labels={"a": "b"}, news=3)
    after = replace(before, state=State.PAUSING, answered_power="w-1", due_at=s(1))
    update = record_update(before, after, ())
    assert set(update.set) == {"state", "answered_power", "due_at", "due_shard", "attempts"}
    assert not update.add


def test_labels_change_beside_a_decision_and_both_stay(shelf: Shelf) -> None:
    held = shelf.claimed()
    shelf.store.amend(held, {"labels": {"team": "x"}}, Entry(T, "labels", "starting"))
    shelf.saved(held, state=State.RUNNING, serving=1)
    read = shelf.other.load(Sandbox, "sbx-a")
    assert read is not None
    assert (read.labels, read.state) == ({"team": "x"}, State.RUNNING)


def test_a_fact_is_told_without_a_claim_and_is_news_to_the_holder(shelf: Shelf) -> None:
    late = shelf.claimed()
    shelf.clock.at(s(30))
    holder = shelf.other.claim(late, 30_000)
    assert holder is not None
    known = replace(late.attempts[0], outcome=Outcome.CREATED, instance_id="i-9", looks=4)
    shelf.store.tell(late, known)
    with pytest.raises(News):
        shelf.saved(holder, state=State.RUNNING)
    read = shelf.other.load(Sandbox, "sbx-a")
    assert read is not None
    told = read.attempts[0]
    assert (told.outcome, told.instance_id, told.looks) == (Outcome.CREATED, "i-9", 4)
    assert (read.epoch, read.nonce, read.due_at) == (holder.epoch, holder.nonce, s(30))


def test_a_record_leaves_the_due_index_and_a_wish_brings_it_back(shelf: Shelf) -> None:
    quiet = shelf.saved(shelf.claimed(), due_at=None)
    assert shelf.due() == []
    assert "due_shard" not in shelf.item("SBX#sbx-a")
    shelf.store.wish(quiet, "wish_look", wish("look"), asked())
    assert shelf.due(T) == ["sbx-a"]


def test_what_is_due_later_is_not_yet_found(shelf: Shelf) -> None:
    shelf.saved(shelf.claimed(), due_at=s(60))
    assert shelf.due(s(60) - 1) == []
    assert shelf.due(s(60)) == ["sbx-a"]


FINISHED = {"state": State.DESTROYED, "attempts": (attempt(1, Outcome.GONE, epoch=1),)}


def test_a_finished_record_is_kept_thirty_days_and_needs_no_guard(shelf: Shelf) -> None:
    shelf.saved(shelf.claimed(), due_at=None, **FINISHED)
    end = SECOND + DAYS * DAY
    assert shelf.item("SBX#sbx-a")[TTL] == end
    assert shelf.item("SBX#sbx-a", "B#001")[TTL] == end
    assert shelf.item("GUARD#sbx-a") == {}
    assert all(e[TTL] >= end for e in shelf.log())  # type: ignore[operator]


def test_a_terminal_record_with_an_open_attempt_is_kept_and_guarded(shelf: Shelf) -> None:
    shelf.saved(shelf.claimed(), state=State.DESTROYED)
    assert TTL not in shelf.item("SBX#sbx-a")
    assert shelf.item("GUARD#sbx-a")


def test_a_moved_deadline_takes_guard_and_key_along(shelf: Shelf) -> None:
    shelf.saved(shelf.claimed(), expires_at=s(7200))
    assert shelf.item("IDEM#acme#k")[TTL] == SECOND + 7200 + DAY
    assert shelf.item("IDEM#acme#k")["request_hash"] == "h"
    assert shelf.item("GUARD#sbx-a")[TTL] == SECOND + 7200 + GUARD_SECONDS


def saved_with(shelf: Shelf, before: Sandbox, **changes: Any) -> None:
    after = replace(before, state=State.FAILED)
    shelf.store.save(Change(before, after, **changes))


def test_the_first_result_is_kept_under_the_key(shelf: Shelf) -> None:
    saved_with(shelf, shelf.claimed(), result=result(403))
    found = shelf.store.key("acme", "k")
    assert found is not None
    assert (found.record_id, found.request_hash, found.result) == ("sbx-a", "h", result(403))


def test_a_freed_key_is_gone_and_can_be_taken(shelf: Shelf) -> None:
    saved_with(shelf, shelf.claimed(), frees_key=True)
    assert shelf.store.key("acme", "k") is None
    assert shelf.store.insert(box(id="sbx-b", key_hash="k", request_hash="h"), CREATED) is None


def test_a_record_without_a_key_touches_none(shelf: Shelf) -> None:
    held = shelf.claimed(key_hash=None)
    saved_with(shelf, held, result=result(), frees_key=True)
    assert not [i for i in shelf.memory.items() if str(i["pk"]).startswith("IDEM#")]


@pytest.mark.parametrize("change", [{"frees_key": True}, {"result": result()}])
def test_a_key_that_is_another_sandboxs_by_now_is_left_alone(
    shelf: Shelf, change: dict[str, Any]
) -> None:
    held = shelf.claimed()
    shelf.memory.replace(("IDEM#acme#k", "A"), None)
    theirs = box(id="sbx-b", key_hash="k", request_hash="h2")
    assert shelf.other.insert(theirs, CREATED) is None
    saved_with(shelf, held, **change)
    found = shelf.store.key("acme", "k")
    assert found is not None
    assert (found.record_id, found.request_hash, found.result) == ("sbx-b", "h2", None)
    read = shelf.other.load(Sandbox, "sbx-a")
    assert read is not None
    assert read.state is State.FAILED


def test_entries_of_one_moment_keep_their_order_and_their_number(shelf: Shelf) -> None:
    held = shelf.claimed()
    after = replace(held, state=State.RUNNING, serving=1)
    entries = tuple(Entry(T, f"e{i}", "running") for i in range(3))
    shelf.store.save(Change(held, after, entries[:2]))
    shelf.store.save(Change(after, replace(after, step_tries=1), entries[2:], first_entry=2))
    assert [e["event"] for e in shelf.log()] == ["created", "e0", "e1", "e2"]


def test_a_list_shows_a_fact_that_was_told_once_it_is_decided_upon(shelf: Shelf) -> None:
    made = shelf.inserted()
    told = attempt(1, Outcome.CREATED, epoch=1, instance_id="i-1", ready=True)
    shelf.store.tell(made, told)
    fresh = shelf.store.load(Sandbox, made.id)
    assert fresh is not None
    held = shelf.store.claim(fresh, 30_000)
    assert held is not None
    shelf.saved(held, state=State.RUNNING, serving=1)
    ((shown,), _) = shelf.store.of_tenant(Sandbox, "acme", None, 9, None)
    assert shown.server is not None
    assert shown.server.instance_id == "i-1"


def test_a_tenants_records_come_newest_first_page_by_page(shelf: Shelf) -> None:
    for n in range(7):
        made = box(id=f"sbx-{n}", created_at=s(n // 2), tenant="acme" if n else "else")
        assert shelf.other.insert(made, CREATED) is None
    found, cursor = shelf.store.of_tenant(Sandbox, "acme", None, 4, None)
    rest, end = shelf.store.of_tenant(Sandbox, "acme", None, 4, cursor)
    ids = [f"sbx-{n}" for n in (6, 5, 4, 3, 2, 1)]
    assert [b.id for b in (*found, *rest)] == ids
    assert end is None
    since, _ = shelf.store.of_tenant(Sandbox, "acme", s(2), 9, None)
    assert [b.id for b in since] == ids[:3]
