"""Reconcile: what a list may make us do, and what it may not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sandbox_router.model.naming import account, identity
from sandbox_router.ports import Instance, InstancePage, Order
from sandbox_router.table import Delete, Update
from tests.sim.world import RECONCILE_MS, SHAPE, World

NETS = frozenset({"queue", "sweep", "reconcile"})
ONLY = frozenset({"queue", "reconcile"})
DEPLOYMENT, MINUTE = "deployment-1", 60_000


def tags(n: int = 1, sandbox: str = "sbx-lost", whose: str = DEPLOYMENT) -> dict[str, str]:
    """The tags of an attempt of ours, or of another deployment's account."""
    return {
        "constal-tenant": "acme",
        "constal-namespace": "default",
        "constal-account": account(whose),
        "constal-sandbox-id": sandbox,
        "constal-sandbox": identity(DEPLOYMENT, sandbox, n),
    }


def born(world: World, held: dict[str, str], age_ms: int = 0) -> str:
    """An instance at alpha with these tags, so old; its id."""
    order = Order("r-x", "base", SHAPE, held, 86_400)
    box = world.providers["alpha"]._born(order, -age_ms)
    return box.id


def alive(world: World) -> set[str]:
    return {box.id for box in world.living()}


def passes(world: World, count: int) -> None:
    world.run_until(world.clock.now() + count * RECONCILE_MS + 1)


@pytest.mark.case("A7")
def test_only_what_is_provably_ours_and_nobodys_is_destroyed() -> None:
    world = World(nets=NETS, limits=False)
    hour = 3_600_000
    ours = born(world, tags(), hour)
    other = born(world, tags(whose="other"), hour)
    none = born(world, {}, hour)
    half = {k: v for k, v in tags().items() if k != "constal-sandbox"}
    partial = born(world, half, hour)
    copied = {**tags(), "constal-sandbox": identity("x", "sbx-lost", 1)}
    foreign_name = born(world, copied, hour)
    young = born(world, tags(sandbox="sbx-new"), 10_000)
    reports = world.router.reconcile()
    assert ours in alive(world), "seen once only"
    assert set(reports[0].reported) == {partial, foreign_name}
    passes(world, 1)
    assert alive(world) == {other, none, partial, foreign_name, young}
    passes(world, 3)
    assert alive(world) == {other, none, partial, foreign_name}


def test_a_record_that_was_lost_does_not_keep_its_instance() -> None:
    world = World(nets=NETS, limits=False)
    world.create(ttl=3600)
    (box,) = world.boxes()
    for key in [(str(i["pk"]), str(i["sk"])) for i in world.memory.items()]:
        world.memory.write(Delete(key))
    (vendor,) = world.living()
    world.run_until(vendor.born_at + 16 * MINUTE)
    assert world.living() == []
    assert vendor.deleted_by_us
    events = [i["event"] for i in world.memory.items() if i["pk"] == f"LOG#{box.id}"]
    assert events == ["orphan.found"]


def test_an_instance_a_refused_attempt_left_behind_is_found_and_destroyed() -> None:
    world = World(nets=NETS, limits=False)
    world.providers["alpha"].script("create", "capacity")
    world.create(ttl=3600)
    (box,) = world.boxes()
    left = born(world, tags(1, box.id))
    assert len(world.living()) == 2
    passes(world, 1)
    world.run_until(world.clock.now() + 5_000)
    assert left not in alive(world)
    assert len(world.living()) == 1
    assert world.boxes()[0].state == "running"


def test_a_clone_of_a_running_sandbox_is_reported_and_ends_with_its_record() -> None:
    world = World(nets=NETS, limits=False)
    world.create(ttl=3600)
    (box,) = world.boxes()
    clone = born(world, tags(1, box.id))
    passes(world, 3)
    assert clone in alive(world)
    assert clone in world.router.reconcile()[0].reported
    world.run_until(box.expires_at + 3 * RECONCILE_MS)
    assert world.living() == []


def test_reconcile_alone_ends_an_expired_sandbox() -> None:
    world = World(nets=frozenset({"reconcile"}), limits=False)
    world.create(ttl=120)
    (vendor,) = world.living()
    world.run_until(world.boxes()[0].expires_at + 6 * MINUTE)
    assert vendor.deleted_by_us


@pytest.mark.case("A3")
def test_a_list_that_shows_the_dead_changes_nothing() -> None:
    world = World(nets=NETS, limits=False)
    reply = world.create(ttl=3600)
    assert reply is not None
    (vendor,) = world.living()
    world.destroy(reply.record_id or "")
    alpha = world.providers["alpha"]
    shown = InstancePage((alpha._seen(vendor),), None)
    for flap in (True, False, True, False, True):
        Paged(world, {None: shown if flap else InstancePage((), None)})
        world.router.reconcile()
        assert world.boxes()[0].state == "destroyed"
    assert [op for op, _ in alpha.calls].count("destroy") == 1


def test_an_empty_list_never_makes_a_sandbox_lost() -> None:
    world = World(nets=NETS, limits=False)
    world.create(ttl=3600)
    Paged(world, {None: InstancePage((), None)})
    passes(world, 4)
    assert world.boxes()[0].state == "running"


def test_what_the_provider_stopped_is_paused_and_the_record_looked_itself() -> None:
    world = World(nets=NETS, limits=False)
    world.create(ttl=3600)
    world.living()[0].state = "paused"
    passes(world, 1)
    world.run_until(world.clock.now() + 2_000)
    (box,) = world.boxes()
    assert (box.state, box.state_reason) == ("paused", "provider_stopped")


class Paged:
    """A provider's list in pages, of a script."""

    def __init__(self, world: World, pages: dict[str | None, InstancePage]) -> None:
        self.asked: list[str | None] = []
        self._pages = pages
        world.providers["alpha"].instances = self  # type: ignore[method-assign]

    def __call__(self, cursor: str | None) -> InstancePage:
        self.asked.append(cursor)
        return self._pages[cursor]


def some(world: World, ids: list[str]) -> tuple[Instance, ...]:
    alpha = world.providers["alpha"]
    return tuple(alpha._seen(alpha.boxes[i]) for i in ids)


@pytest.mark.case("A22")
def test_an_orphan_on_a_later_page_is_found() -> None:
    world = World(nets=NETS, limits=False)
    ids = [born(world, tags(whose="other")) for _ in range(250)]
    orphan = ids[236]
    alpha = world.providers["alpha"]
    box = alpha.boxes[orphan]
    box.order, box.born_at = replace(box.order, tags=tags()), box.born_at - 3_600_000
    pages = {
        None: InstancePage(some(world, ids[:100]), "a"),
        "a": InstancePage(some(world, ids[100:200]), "b"),
        "b": InstancePage(some(world, ids[200:]), None),
    }
    Paged(world, pages)
    world.router.reconcile()
    world.clock.sleep(300)
    report = world.router.reconcile()[0]
    assert report.complete
    assert report.destroyed == [orphan]


@pytest.mark.case("A22")
def test_a_cursor_that_comes_back_ends_the_pass_and_says_so() -> None:
    world = World(nets=NETS)
    paged = Paged(world, {None: InstancePage((), "a"), "a": InstancePage((), "a")})
    report = world.router.reconcile()[0]
    assert (report.endless, report.complete) == (True, False)
    assert len(paged.asked) == 2


def test_an_instance_that_cannot_be_destroyed_keeps_no_other_from_it() -> None:
    world = World(nets=NETS, limits=False)
    stuck, other = born(world, tags(), 3_600_000), born(world, tags(2), 3_600_000)
    world.router.reconcile()
    world.clock.sleep(300)
    world.providers["alpha"].script("destroy", "unauthorized")
    report = world.router.reconcile()[0]
    assert (report.failed, report.destroyed) == ("pool_broken", [other])
    world.clock.sleep(300)
    assert world.router.reconcile()[0].destroyed == [stuck]


@pytest.mark.parametrize("damage", [{"state": "unheard_of"}, {"spec": "x"}])
def test_an_unreadable_record_is_set_aside_keeps_its_instance_and_holds_up_nobody(
    damage: dict[str, Any],
) -> None:
    world = World(nets=NETS, limits=False)
    first = world.create("k1", ttl=3600)
    assert first is not None
    world.memory.watch = lambda writes, before: None  # a newer writer's, or a broken one's
    world.memory.write(Update((f"SBX#{first.record_id}", "A"), set={**damage, "due_at": 1}))
    second = world.create("k2", ttl=60)
    assert second is not None
    end = world.clock.now() + 20 * MINUTE
    while world.clock.now() < end:
        world.step()
    assert len(world.living()) == 1
    item = world.memory.get((f"SBX#{first.record_id}", "A"))
    assert item is not None
    assert 3 <= int(str(item["stuck"])) <= 6
    done = world.memory.get((f"SBX#{second.record_id}", "A"))
    assert done is not None
    assert done["state"] == "destroyed"
