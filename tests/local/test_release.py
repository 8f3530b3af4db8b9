"""A router that starts ends the claims of the one before it, and whatever it finds it starts."""

from __future__ import annotations

from functions.edge.wiring import Backend
from infra.local.assembly import living, release
from sandbox_router.model.sandbox import Sandbox
from sandbox_router.store import Store
from tests.fakes.vault import FakeVault
from tests.sim.world import TENANT
from tests.unit.core.scenes import Scene
from tests.unit.core.test_snapshots import taken


def backend(scene: Scene) -> Backend:
    return Backend(scene.memory, scene.queue, FakeVault(), scene.objects, scene.clock, scene.ids)


def claimed(scene: Scene) -> str:
    """A sandbox whose router died with its claim."""
    box = scene.made()
    assert Store(scene.memory, scene.clock, scene.ids).claim(box, 30_000) is not None
    return box.id


def test_claims_of_the_dead_end_at_once() -> None:
    scene = Scene()
    box = claimed(scene)
    assert scene.seen(box).lease_until > scene.clock.now()
    release(backend(scene))
    assert (scene.seen(box).lease_until, scene.seen(box).due_at) == (0, scene.clock.now())


def test_claims_on_snapshots_end_too() -> None:
    scene = Scene()
    found = taken(scene)
    assert Store(scene.memory, scene.clock, scene.ids).claim(found, 30_000) is not None
    release(backend(scene))
    assert scene.router.snapshot(TENANT, found.id).lease_until == 0


def test_a_record_nobody_can_read_keeps_no_router_from_starting() -> None:
    scene = Scene()
    broken, sound = claimed(scene), claimed(scene)
    key = (f"SBX#{broken}", "A")
    scene.memory.replace(key, {**(scene.memory.get(key) or {}), "state": "unheard_of"})
    release(backend(scene))
    assert [box.id for box in living(backend(scene), Sandbox)] == [sound]
    assert scene.seen(sound).lease_until == 0
