"""Reconcile and captures: the list to its end, whatever else fails, and never what is not ours."""

from __future__ import annotations

import pytest

from sandbox_router.model.naming import capture_name
from sandbox_router.ports import CapturePage
from tests.fakes.provider import Shot
from tests.sim.world import RECONCILE_MS, World

NETS = frozenset({"queue", "sweep", "reconcile"})
DEPLOYMENT = "deployment-1"
LOST = "snap-" + "a" * 26


@pytest.fixture
def world() -> World:
    return World(nets=NETS, limits=False)


def shot(world: World, name: str, age_ms: int = 3_600_000) -> Shot:
    """A capture at alpha under this name, so old."""
    born = world.clock.now() - age_ms
    alpha = world.providers["alpha"]
    made = Shot(f"alpha-shot-{len(alpha.shots)}", name, "alpha-1", "disk", born, born)
    alpha.shots[made.id] = made
    return made


def kept(world: World) -> list[str]:
    return [one.name for one in world.providers["alpha"].stored()]


def passes(world: World, count: int) -> None:
    world.run_until(world.clock.now() + count * RECONCILE_MS + 1)


@pytest.mark.case("A22")
def test_an_orphan_on_a_later_page_is_found(world: World) -> None:
    for n in range(250):
        name = f"somebodys-{n}"
        shot(world, capture_name(DEPLOYMENT, LOST) if n == 236 else name)
    world.router.reconcile()
    assert len(kept(world)) == 250, "seen once only"
    world.clock.sleep(300)
    report = world.router.reconcile()[0]
    assert (report.complete, report.destroyed) == (True, ["alpha-shot-236"])
    assert len(kept(world)) == 249


@pytest.mark.case("A22")
def test_a_cursor_that_comes_back_ends_the_pass_and_says_so(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str | None] = []

    def captures(cursor: str | None) -> CapturePage:
        asked.append(cursor)
        return CapturePage((), "again")

    monkeypatch.setattr(world.providers["alpha"], "captures", captures)
    report = world.router.reconcile()[0]
    assert (report.endless, report.complete) == (True, False)
    assert asked == [None, "again"]


NAMES = [
    capture_name("deployment-2", LOST),
    capture_name(DEPLOYMENT, LOST)[:-1],
    capture_name(DEPLOYMENT, LOST) + "-copy",
    capture_name(DEPLOYMENT, LOST).upper(),
    LOST,
    f"{LOST}-{'b' * 20}",
    "",
]


def test_only_a_name_that_proves_it_is_ours(world: World) -> None:
    for name in NAMES:
        shot(world, name)
    ours = shot(world, capture_name(DEPLOYMENT, LOST))
    young = shot(world, capture_name(DEPLOYMENT, "snap-" + "b" * 26), age_ms=10_000)
    passes(world, 1)
    assert kept(world) == [*NAMES, young.name]
    assert ours.deleted_by_us
    passes(world, 3)
    assert kept(world) == NAMES


@pytest.mark.parametrize("fault", ["cut", "outage", "unauthorized"])
def test_a_list_that_fails_keeps_no_other_list_from_it(world: World, fault: str) -> None:
    alpha = world.providers["alpha"]
    alpha.script("instances", *[fault] * 3)
    shot(world, capture_name(DEPLOYMENT, LOST))
    for _ in range(2):
        report = world.router.reconcile()[0]
        assert report.failed is not None
        assert not report.complete
        world.clock.sleep(300)
    assert kept(world) == []
    alpha.script("captures", fault)
    alpha.faults["instances"].clear()
    report = world.router.reconcile()[0]
    assert (report.complete, report.failed is None) == (False, False)
    assert world.router.reconcile()[0].complete


def test_one_that_cannot_be_destroyed_keeps_no_other_from_it(world: World) -> None:
    stuck = shot(world, capture_name(DEPLOYMENT, LOST))
    other = shot(world, capture_name(DEPLOYMENT, "snap-" + "b" * 26))
    world.router.reconcile()
    world.clock.sleep(300)
    world.providers["alpha"].script("destroy_capture", "conflict")  # something made of it lives
    report = world.router.reconcile()[0]
    assert (report.failed, report.destroyed) == ("provider_conflict", [other.id])
    assert kept(world) == [stuck.name]
    world.clock.sleep(300)
    assert world.router.reconcile()[0].destroyed == [stuck.id]
