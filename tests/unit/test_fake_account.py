"""The simulated account misbehaves as its words say."""

from __future__ import annotations

import pytest

from sandbox_router.model.failure import Conflicted, Unknown
from sandbox_router.model.size import Shape
from sandbox_router.ports import Order
from tests.fakes.account import BRIEF_MS, ENDING_MS, SLOW, FakeAccount
from tests.fakes.clock import FakeClock

TAGS = {"constal-sandbox": "r-1"}


def account(**options: int | bool) -> tuple[FakeAccount, FakeClock]:
    clock = FakeClock()
    return FakeAccount("alpha", clock, **options), clock  # type: ignore[arg-type]


def make(vendor: FakeAccount, identity: str = "r-1", timeout: float = 20.0) -> str:
    order = Order(identity, "image", Shape(1000, 512), {"constal-sandbox": identity}, 600)
    return vendor.create(order, timeout=timeout).id


def test_a_word_it_does_not_know_is_refused() -> None:
    with pytest.raises(AssertionError):
        account()[0].script("create", "slo")


def test_two_appear_under_one_name_and_one_lives_shorter_than_asked() -> None:
    vendor, clock = account()
    vendor.script("create", "twice", "brief")
    make(vendor)
    assert [box.twin for box in vendor.living()] == [False, True]
    brief = make(vendor, "r-2")
    clock.sleep(BRIEF_MS / 1000)
    assert vendor.get(brief) is None


def test_a_slow_answer_is_no_answer_to_whoever_has_hung_up() -> None:
    vendor, clock = account()
    before = clock.now()
    vendor.script("create", "slow", "slow")
    make(vendor, "r-1")
    assert clock.now() == before + SLOW * 1000
    with pytest.raises(Unknown):
        make(vendor, "r-2", timeout=1.0)
    assert len(vendor.living()) == 2


def test_what_is_hidden_is_back_after_the_list_lag() -> None:
    vendor, clock = account(list_lag_ms=5_000)
    id_ = make(vendor)
    vendor.script("get", "hidden")
    assert vendor.get(id_) is None
    clock.sleep(4.9)
    assert vendor.get(id_) is None
    clock.sleep(0.1)
    assert vendor.get(id_) is not None


def test_an_end_may_take_a_while_or_be_refused_to_what_boots() -> None:
    vendor, clock = account(boots_ms=3_000, holds_booting=True)
    id_ = make(vendor)
    with pytest.raises(Conflicted):
        vendor.destroy(id_)
    clock.sleep(3)
    vendor.script("destroy", "ending")
    vendor.destroy(id_)
    assert vendor.get(id_) is not None
    clock.sleep(ENDING_MS / 1000)
    assert vendor.get(id_) is None


def test_lists_show_the_dead_for_a_while_and_a_look_does_not() -> None:
    vendor, clock = account(ghost_ms=1_000)
    id_ = make(vendor)
    vendor.destroy(id_)
    ghost = vendor.find(TAGS)
    assert ghost is not None
    assert (ghost.id, ghost.state) == (id_, "running")
    assert [i.id for i in vendor.instances(None).instances] == [id_]
    assert vendor.get(id_) is None
    clock.sleep(1)
    assert vendor.find(TAGS) is None


def test_pages_overlap_and_may_skip() -> None:
    vendor, _ = account(page=2)
    made = [make(vendor, f"r-{n}") for n in range(4)]
    first = vendor.instances(None)
    second = vendor.instances(first.cursor)
    assert [i.id for i in first.instances] == made[:2]
    assert [i.id for i in second.instances] == made[1:]
    assert second.cursor is None
    vendor.script("instances", "skipped")
    assert [i.id for i in vendor.instances(None).instances] == made[:1]


def test_its_clock_may_be_wrong() -> None:
    vendor, clock = account(skew_ms=-120_000)
    seen = vendor.get(make(vendor))
    assert seen is not None
    assert seen.created_at == clock.now() - 120_000
