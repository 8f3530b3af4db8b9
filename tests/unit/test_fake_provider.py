"""The simulated account captures as the port says."""

from __future__ import annotations

import pytest

from sandbox_router.model.failure import Capacity, Conflicted, Gone, Rejected, Unknown
from sandbox_router.model.size import Shape
from sandbox_router.ports import Order, Snapshots
from tests.fakes.account import FakeAccount
from tests.fakes.clock import FakeClock
from tests.fakes.provider import FakeProvider

NAME = "snap-1"


def account(**options: int | bool) -> tuple[FakeProvider, FakeClock, str]:
    clock = FakeClock()
    vendor = FakeProvider("alpha", clock, **options)  # type: ignore[arg-type]
    return vendor, clock, vendor.create(order("image"), timeout=1).id


def order(reference: str, identity: str = "r-1", *, from_capture: bool = False) -> Order:
    tags = {"constal-sandbox": identity}
    return Order(identity, reference, Shape(1000, 512), tags, 60, from_capture=from_capture)


def take(vendor: FakeProvider, source: str) -> str:
    return vendor.capture(source, NAME, "disk", timeout=1).id


def test_only_the_account_with_captures_has_the_ability() -> None:
    vendor, clock, _ = account()
    assert isinstance(vendor, Snapshots)
    assert not isinstance(FakeAccount("beta", clock), Snapshots)


def test_a_capture_is_ready_after_a_while_and_listed_after_the_lag() -> None:
    vendor, clock, source = account(captures_ms=3_000, list_lag_ms=1_000)
    made = vendor.capture(source, NAME, "disk", timeout=1)
    assert (made.state, made.name) == ("creating", NAME)
    assert vendor.find_capture(source, NAME) is None
    with pytest.raises(Conflicted):
        vendor.create(order(made.id, "r-2", from_capture=True), timeout=1)
    clock.sleep(3)
    assert vendor.find_capture(source, NAME) == vendor.get_capture(made.id)
    assert vendor.create(order(made.id, "r-2", from_capture=True), timeout=1).state == "running"


def test_a_capture_outlives_its_source_and_ends_when_it_is_destroyed() -> None:
    vendor, _, source = account()
    taken = take(vendor, source)
    vendor.destroy(source)
    assert vendor.get_capture(taken) is not None
    vendor.destroy_capture(taken)
    vendor.destroy_capture(taken)
    assert vendor.get_capture(taken) is None
    assert vendor.stored() == []
    with pytest.raises(Rejected):
        vendor.create(order(taken, "r-2", from_capture=True), timeout=1)


def test_a_capture_does_not_go_while_what_was_made_of_it_lives() -> None:
    vendor, _, source = account()
    taken = take(vendor, source)
    user = vendor.create(order(taken, "r-2", from_capture=True), timeout=1)
    with pytest.raises(Conflicted):
        vendor.destroy_capture(taken)
    vendor.destroy(user.id)
    vendor.destroy_capture(taken)
    assert vendor.stored() == []


def test_a_repeat_finds_the_first_only_where_the_vendor_says_so() -> None:
    vendor, _, source = account()
    assert take(vendor, source) == take(vendor, source)
    vendor, _, source = account(captures_repeat=False)
    assert take(vendor, source) != take(vendor, source)
    assert len(vendor.stored()) == 2


def test_a_lost_capture_exists_and_a_cut_one_does_not() -> None:
    vendor, _, source = account()
    vendor.script("capture", "cut", "lost")
    for stored in (0, 1):
        with pytest.raises(Unknown):
            take(vendor, source)
        assert len(vendor.stored()) == stored


def test_a_late_capture_appears_later_and_a_repeat_makes_no_second() -> None:
    vendor, clock, source = account()
    vendor.script("capture", "late")
    for _ in range(2):
        with pytest.raises(Unknown):
            take(vendor, source)
    assert vendor.find_capture(source, NAME) is None
    clock.sleep(vendor.late_ms / 1000)
    assert vendor.find_capture(source, NAME) is not None
    assert len(vendor.stored()) == 1


def test_a_capture_can_fail_be_refused_or_find_no_source() -> None:
    vendor, _, source = account()
    vendor.script("capture", "capacity", "failed")
    with pytest.raises(Capacity):
        take(vendor, source)
    failed = vendor.get_capture(take(vendor, source))
    assert failed is not None
    assert failed.state == "failed"
    with pytest.raises(Gone):
        take(vendor, "alpha-9")


def test_the_list_has_pages() -> None:
    vendor, _, source = account(captures_page=2, captures_repeat=False)
    taken = [take(vendor, source) for _ in range(3)]
    first = vendor.captures(None)
    second = vendor.captures(first.cursor)
    assert [c.id for c in first.captures + second.captures] == taken
    assert second.cursor is None


def test_taking_one_may_stop_its_source() -> None:
    vendor, _, source = account(captures_stop=True)
    take(vendor, source)
    seen = vendor.get(source)
    assert seen is not None
    assert seen.state == "stopped"
