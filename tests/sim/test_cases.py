"""Public fault reports of this field as ways of a life on simulated time; what each one is, and
where else it is shown, is the table of `tests/architecture/test_cases.py`.
"""

from __future__ import annotations

import asyncio

import pytest

from sandbox_router.model.record import Outcome
from sandbox_router.model.sandbox import State
from sandbox_router.ports import InstancePage
from tests.fakes.clock import START
from tests.sim.test_reconcile import NETS, Paged, born, some, tags
from tests.sim.world import LATE_MS, World
from tests.unit.core.scenes import Scene, body

MINUTE = 60
LEASE, WINDOW = 30, 600


def created(scene: Scene, name: str = "alpha") -> set[str]:
    """The names under which a vendor was asked to create."""
    return {subject for op, subject in scene.vendor(name).calls if op == "create"}


@pytest.mark.case("A1")
@pytest.mark.parametrize("fault", ["lost", "late"])
@pytest.mark.parametrize("idempotent", [True, False])
def test_a_create_whose_answer_was_lost_and_is_repeated_is_one_sandbox_on_one_instance(
    fault: str, idempotent: bool
) -> None:
    scene = Scene(idempotent=idempotent)
    scene.vendor().script("create", fault)  # late: it appears 45 s after the 504
    first = scene.ask("k1", ttl_seconds=1800)
    scene.on(31)
    again = scene.ask("k1", ttl_seconds=1800)
    assert {first.record_id, again.record_id} == {scene.box().id}
    scene.until(State.RUNNING)
    scene.on(20 * MINUTE)
    (alive,) = scene.living()
    assert alive.id == (scene.box().server or scene.box().attempts[0]).instance_id
    assert len(created(scene)) == 1
    scene.settle()
    scene.check_end()


@pytest.mark.case("A2")
@pytest.mark.parametrize("idempotent", [True, False])
def test_an_error_behind_which_it_booted_is_looked_up_and_served_from_there(
    idempotent: bool,
) -> None:
    scene = Scene(idempotent=idempotent)
    scene.vendor().script("create", "lost")
    reply = scene.ask()
    assert (reply.status, body(reply)["pool_id"]) == (201, "alpha")
    assert scene.vendor("beta").calls == []
    assert len(scene.living()) == 1


@pytest.mark.case("A2")
def test_what_a_look_up_does_not_find_is_a_debt_beside_the_next_pools_instance() -> None:
    scene = Scene(idempotent=False)
    scene.vendor().script("create", "late")
    reply = scene.ask(wait=25, ttl_seconds=1800)
    assert (reply.status, body(reply)["pool_id"]) == (201, "beta")
    assert [a.outcome for a in scene.box().attempts] == [Outcome.UNKNOWN, Outcome.CREATED]
    (late,) = scene.vendor().boxes.values()
    scene.on(WINDOW)
    assert late.deleted_by_us
    assert (late.dead_at or 0) <= late.born_at + 31_000
    assert [box.id for box in scene.living()] == ["beta-1"]
    assert scene.ask(ttl_seconds=1800).record_id == reply.record_id


class Cancelled(asyncio.CancelledError):
    """As a task is cancelled."""


ENDS = (Cancelled, SystemExit, KeyboardInterrupt)


@pytest.fixture(params=[(point, end) for point in range(1, 9) for end in ENDS])
def cancelled(request: pytest.FixtureRequest) -> Scene:
    """A create that was cancelled at one of its port calls, in a process that lives on."""
    point, end = request.param
    scene = Scene(limits=False)

    def raises() -> None:
        raise end

    scene.between, scene.moment = raises, lambda _: scene.ticks == point
    with pytest.raises(end):
        scene.ask("k1", ttl_seconds=120)
    return scene


@pytest.mark.case("A21")
def test_a_create_cancelled_anywhere_is_taken_up_by_a_retry(cancelled: Scene) -> None:
    scene = cancelled
    scene.clock.sleep(LEASE + 1)
    again = scene.ask("k1", ttl_seconds=120)
    assert again.status == 201
    assert [box.id for box in scene.boxes()] == [again.record_id]
    (alive,) = scene.living()
    assert alive.id == body(again)["instance_id"]
    assert len(created(scene)) == 1
    scene.settle()
    scene.check_end()


@pytest.mark.case("A21")
def test_a_create_cancelled_anywhere_leaves_nothing_after_its_lifetime(cancelled: Scene) -> None:
    scene = cancelled
    scene.on(120 + LEASE + MINUTE)
    assert scene.living() == []
    scene.settle()
    scene.check_end()


@pytest.mark.case("A22")
def test_an_instance_that_moves_between_pages_is_neither_lost_nor_destroyed() -> None:
    world = World(nets=NETS, limits=False)
    made = [world.create(f"k{n}", ttl=7200) for n in range(3)]
    assert all(reply is not None and reply.status == 201 for reply in made)
    ids = [box.id for box in world.living()]
    orphan = born(world, tags(), 3_600_000)
    twice = {
        None: InstancePage(some(world, [*ids[:2], orphan]), "a"),
        "a": InstancePage(some(world, [ids[1], orphan, ids[2]]), None),
    }
    never = {None: InstancePage(some(world, ids[:1]), "a"), "a": InstancePage((), None)}
    for pages in (twice, never, twice, never):
        Paged(world, dict(pages))
        report = world.router.reconcile()[0]
        assert report.complete
        world.run_until(world.clock.now() + MINUTE * 1000)
    assert {box.id for box in world.living()} == set(ids)
    assert {box.state for box in world.boxes()} == {State.RUNNING}


@pytest.mark.case("A22")
def test_a_list_without_end_stops_and_concludes_nothing() -> None:
    world = World(nets=NETS, limits=False)
    world.create(ttl=7200)
    endless = Paged(world, {None: InstancePage((), "0")})
    endless._pages.update({str(n): InstancePage((), str(n + 1)) for n in range(1_000)})
    report = world.router.reconcile()[0]
    assert not report.complete
    assert len(endless.asked) <= 200
    assert report.destroyed == report.reported == []
    assert "beta" in [each.pool_id for each in world.router.reconcile()], "others are still swept"
    world.run_until(world.clock.now() + 10 * MINUTE * 1000)
    (box,) = world.boxes()
    assert (box.state, len(world.living())) == (State.RUNNING, 1)


@pytest.mark.case("A11")
@pytest.mark.parametrize("wait", [0.0, 0.001, -5.0])
def test_a_claim_made_with_no_time_left_ends_all_the_same(wait: float) -> None:
    scene = Scene()
    scene.crash_at = 6 if wait else None
    scene.guarded(lambda: scene.ask("k1", wait=wait))
    box = scene.box()
    if wait:
        assert box.nonce is not None
        assert START < box.lease_until <= START + 900_000
    assert box.due_at is not None
    scene.clock.sleep(LEASE + 1)
    again = scene.ask("k1", wait=20.0)
    assert (again.status, again.record_id) == (201, box.id)
    (vendor,) = scene.living()
    scene.settle(horizon_ms=4_000_000)
    assert vendor.dead_at is not None
    assert vendor.dead_at <= scene.box().expires_at + LATE_MS
