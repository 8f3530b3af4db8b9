"""The store on a bad table: every write survives a lost answer, and none is done twice."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

import pytest

from sandbox_router.model.failure import NotFound, StoreBusy
from sandbox_router.model.record import Outcome
from sandbox_router.model.sandbox import Sandbox, State
from sandbox_router.store import Change, ClaimLost, Entry, News, Store
from tests.fakes.clock import FakeClock
from tests.fakes.ids import FakeIds
from tests.fakes.table import MemoryTable
from tests.fakes.weak import Fault
from tests.unit.core.build import T, attempt, box, s, wish
from tests.unit.core.stored import CREATED, Shelf, result

FAULTS: list[Fault] = ["lost", "dropped", "contended", "throttled"]
CLIENT = Entry(T, "wish.client", "starting")
KEYED = box(attempt(epoch=1), key_hash="k", request_hash="h", epoch=1, due_at=T)


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


def loaded(shelf: Shelf) -> Sandbox:
    found = shelf.other.load(Sandbox, "sbx-a")
    assert found is not None
    return found


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("made", [KEYED, replace(KEYED, key_hash=None)], ids=["key", "no key"])
def test_an_insert_whose_answer_is_lost_is_not_a_taken_key(
    shelf: Shelf, fault: Fault, made: Sandbox
) -> None:
    shelf.weak.writes.extend([fault, fault])
    assert shelf.store.insert(made, CREATED) is None
    assert loaded(shelf) == made
    assert len(shelf.log()) == 1


def test_an_insert_overtaken_between_two_tries_shows_the_winner(shelf: Shelf) -> None:
    shelf.weak.writes.append("dropped")
    winner = replace(KEYED, id="sbx-b")
    shelf.clock.meanwhile.append(lambda: shelf.other.insert(winner, CREATED))
    owner = shelf.store.insert(KEYED, CREATED)
    assert owner is not None
    assert owner.record_id == "sbx-b"
    assert shelf.other.load(Sandbox, "sbx-a") is None


@pytest.mark.parametrize("fault", FAULTS)
def test_a_claim_whose_answer_is_lost_is_ours_by_its_nonce(shelf: Shelf, fault: Fault) -> None:
    read = shelf.inserted()
    shelf.weak.writes.append(fault)
    held = shelf.store.claim(read, 30_000)
    assert held is not None
    assert loaded(shelf) == held
    assert held.epoch == read.epoch + 1


def test_a_claim_overtaken_between_two_tries_is_not_ours(shelf: Shelf) -> None:
    read = shelf.inserted()
    shelf.weak.writes.append("dropped")
    shelf.clock.meanwhile.append(lambda: shelf.other.claim(read, 30_000))
    assert shelf.store.claim(read, 30_000) is None


@pytest.mark.parametrize("fault", FAULTS)
def test_a_save_whose_answer_is_lost_is_saved_once(shelf: Shelf, fault: Fault) -> None:
    held = shelf.claimed()
    after = replace(held, state=State.RUNNING, serving=1).with_attempt(
        attempt(1, Outcome.CREATED, epoch=1)
    )
    shelf.weak.writes.append(fault)
    entry = Entry(T, "state", "running")
    assert shelf.store.save(Change(held, after, (entry,), result())) == after
    assert loaded(shelf) == after
    assert [e["event"] for e in shelf.log()] == ["created", "state"]


def test_a_save_whose_answer_is_lost_and_then_a_wish_is_news_and_both_are_stored(
    shelf: Shelf,
) -> None:
    held = shelf.claimed()
    shelf.weak.writes.append("lost")
    shelf.clock.meanwhile.append(lambda: shelf.other.wish(held, "wish_destroy", wish(), CLIENT))
    with pytest.raises(News):
        shelf.saved(held, state=State.RUNNING, serving=1)
    assert (loaded(shelf).state, loaded(shelf).wish_destroy) == (State.RUNNING, wish())


def test_a_save_whose_answer_is_lost_and_then_another_claim_is_lost_and_stays_saved(
    shelf: Shelf,
) -> None:
    held = shelf.claimed()
    shelf.weak.writes.append("lost")
    shelf.clock.meanwhile.append(lambda: shelf.other.claim(loaded(shelf), 30_000))
    with pytest.raises(ClaimLost):
        shelf.saved(held, state=State.RUNNING, serving=1, lease_until=0)
    assert (loaded(shelf).state, loaded(shelf).epoch) == (State.RUNNING, held.epoch + 1)


def test_a_key_freed_with_a_lost_answer_is_not_taken_from_the_next_who_has_it(
    shelf: Shelf,
) -> None:
    held = shelf.claimed()
    theirs = box(id="sbx-b", key_hash="k", request_hash="h")
    shelf.weak.writes.append("lost")
    shelf.clock.meanwhile.append(lambda: shelf.other.insert(theirs, CREATED))
    shelf.store.save(Change(held, replace(held, state=State.FAILED), frees_key=True))
    found = shelf.store.key("acme", "k")
    assert found is not None
    assert found.record_id == "sbx-b"
    assert loaded(shelf).state is State.FAILED


@pytest.mark.parametrize("fault", FAULTS)
def test_a_wish_a_fact_and_labels_survive_a_lost_answer(shelf: Shelf, fault: Fault) -> None:
    held = shelf.claimed()
    shelf.weak.writes.extend([fault, "ok"] * 3)
    shelf.store.wish(held, "wish_destroy", wish(), CLIENT)
    shelf.store.amend(held, {"labels": {"a": "b"}}, Entry(T, "labels", "starting"))
    shelf.store.tell(held, attempt(1, Outcome.CREATED))
    assert not shelf.weak.writes
    read = loaded(shelf)
    assert (read.wish_destroy, read.labels, read.attempts[0].instance_id) == (
        *(wish(), {"a": "b"}, "i-1"),
    )
    assert read.news >= 2
    assert sorted(str(e["event"]) for e in shelf.log()) == ["created", "labels", "wish.client"]


@pytest.mark.parametrize(
    "call",
    [
        lambda store: store.insert(KEYED, CREATED),
        lambda store: store.claim(KEYED, 1),
        lambda store: store.wish(KEYED, "wish_look", wish(), CLIENT),
        lambda store: store.put(("K", "A"), {}),
    ],
)
def test_a_table_that_never_takes_a_write_is_busy_after_five_tries(
    shelf: Shelf, call: Callable[[Store], object]
) -> None:
    shelf.weak.writes.extend(["contended", "dropped", "throttled", "lost", "contended", "ok"])
    shelf.clock.meanwhile.extend([lambda: None] * 4)
    with pytest.raises(StoreBusy):
        call(shelf.store)
    assert list(shelf.weak.writes) == ["ok"]
    assert s(0.3) <= shelf.clock.now() <= s(2)


def test_a_table_that_never_answers_a_read_is_busy_after_five_tries(shelf: Shelf) -> None:
    shelf.weak.reads.extend(["throttled"] * 5)
    with pytest.raises(StoreBusy):
        shelf.store.load(Sandbox, "sbx-a")
    shelf.weak.reads.extend(["throttled"] * 4)
    assert shelf.store.load(Sandbox, "sbx-a") is None


def test_a_wish_for_a_record_that_has_vanished_is_not_found(shelf: Shelf) -> None:
    held = box()
    with pytest.raises(NotFound):
        shelf.store.wish(held, "wish_look", wish(), CLIENT)
    with pytest.raises(NotFound):
        shelf.store.amend(held, {"labels": {}}, CLIENT)
    assert shelf.memory.items() == []


def test_a_fact_about_a_record_that_has_vanished_leaves_no_half_record(shelf: Shelf) -> None:
    shelf.store.tell(box(attempt()), attempt(1, Outcome.CREATED))
    assert shelf.memory.items() == []


def together(count: int, call: Callable[[Store], object]) -> list[object]:
    """`call` from many threads at once, each with its own store over one table."""
    start, found = threading.Barrier(count), list[object]()
    clock, table = FakeClock(T), MemoryTable()
    assert Store(table, clock, FakeIds("first")).insert(KEYED, CREATED) is None

    def run(n: int) -> None:
        store = Store(table, clock, FakeIds(n))
        start.wait()
        found.append(call(store))

    threads = [threading.Thread(target=run, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


@pytest.mark.parametrize("race", range(8))
def test_of_sixteen_who_claim_at_once_exactly_one_holds_it(race: int) -> None:
    claims = together(16, lambda store: store.claim(KEYED, 30_000))
    assert len(claims) == 16
    assert sum(claim is not None for claim in claims) == 1


@pytest.mark.parametrize("race", range(8))
def test_of_sixteen_who_create_under_one_key_all_see_the_same_sandbox(race: int) -> None:
    def create(store: Store) -> object:
        mine = replace(KEYED, id=f"sbx-{threading.get_ident()}", key_hash="k2")
        owner = store.insert(mine, CREATED)
        return mine.id if owner is None else owner.record_id

    assert len(set(together(16, create))) == 1


def test_sixteen_wishes_at_once_are_all_counted() -> None:
    def hope(store: Store) -> object:
        store.wish(KEYED, "wish_look", wish(), CLIENT)
        return store

    last = together(16, hope)[-1]
    assert isinstance(last, Store)
    read = last.load(Sandbox, "sbx-a")
    assert read is not None
    assert read.news == 16
