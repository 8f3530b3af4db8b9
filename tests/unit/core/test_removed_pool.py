"""A pool is taken out of the configuration while something of ours lives in it."""

from __future__ import annotations

import inspect
from typing import Protocol

import pytest

from sandbox_router.lifecycle.lasting import Nobody
from sandbox_router.lifecycle.snapshots import SnapshotRequest
from sandbox_router.model.failure import PoolRemoved
from sandbox_router.model.sandbox import State
from sandbox_router.ports import Command, Provider, abilities
from tests.fakes.account import FakeAccount
from tests.sim.world import TENANT
from tests.unit.core.scenes import Scene


def test_a_wish_to_destroy_is_kept_and_granted_when_the_pool_is_back() -> None:
    scene = Scene()
    box = scene.made(ttl_seconds=7200)
    scene.pools.remove("alpha")
    assert scene.router.destroy(TENANT, box.id).state is State.DESTROYING
    scene.on(3600)
    assert scene.seen(box.id).state is State.DESTROYING
    scene.pools.restore("alpha")
    scene.on(400)
    assert scene.seen(box.id).state is State.DESTROYED


def test_calls_to_a_live_sandbox_say_what_is_wrong() -> None:
    scene = Scene()
    box = scene.made()
    scene.pools.remove("alpha")
    with pytest.raises(PoolRemoved):
        scene.router.extend(TENANT, box.id, 7200, shorten=False)
    with pytest.raises(PoolRemoved):
        scene.router.pause(TENANT, box.id)
    request = SnapshotRequest(request_id="r", fingerprint=b"")
    with pytest.raises(PoolRemoved):
        scene.router.take_snapshot(TENANT, box.id, request, wait_seconds=20)
    with pytest.raises(PoolRemoved):
        list(scene.router.run(TENANT, box.id, Command(shell="true")))
    assert scene.router.get(TENANT, box.id, refresh=True).state is State.RUNNING


def test_a_debt_in_a_removed_pool_keeps_no_other_instance_alive() -> None:
    scene = Scene(idempotent=False)
    scene.vendor("alpha").script("create", "cut")
    reply = scene.ask(ttl_seconds=300, wait=25)
    box = scene.seen(reply.record_id or "")
    assert [a.pool_id for a in box.attempts] == ["alpha", "beta"]
    scene.pools.remove("alpha")
    scene.on(400)
    assert scene.seen(box.id).state is State.DESTROYED
    assert scene.living() == []


def test_a_create_goes_on_to_the_next_pool_of_its_route() -> None:
    scene = Scene()
    reply = scene.ask(wait=0)
    scene.pools.remove("alpha")
    scene.on(30)
    box = scene.seen(reply.record_id or "")
    assert (box.state, [a.code for a in box.attempts]) == (State.RUNNING, ["pool_removed", None])
    assert box.server is not None
    assert box.server.pool_id == "beta"


def test_nothing_is_made_of_a_snapshot_there_until_the_pool_is_back() -> None:
    scene = Scene()
    request = SnapshotRequest(request_id="r", fingerprint=b"")
    taken = scene.router.take_snapshot(TENANT, scene.made().id, request, wait_seconds=20)
    scene.pools.remove("alpha")
    with pytest.raises(PoolRemoved):
        scene.ask("k", snapshot_id=taken.record_id)
    scene.pools.restore("alpha")
    assert scene.ask("k", snapshot_id=taken.record_id).status == 201


def test_a_snapshot_whose_pools_id_is_another_kinds_waits_and_breaks_nobody() -> None:
    scene = Scene()
    request = SnapshotRequest(request_id="r", fingerprint=b"")
    taken = scene.router.take_snapshot(TENANT, scene.made().id, request, wait_seconds=20)
    able = scene.providers["alpha"]
    scene.providers["alpha"] = FakeAccount("alpha", scene.clock)  # type: ignore[assignment]
    scene.pools._providers = scene.providers
    snapshot_id = taken.record_id or ""
    assert scene.router.destroy_snapshot(TENANT, snapshot_id).state == "deleting"
    scene.providers["alpha"] = able
    scene.on(60)
    assert scene.router.snapshot(TENANT, snapshot_id).state == "deleted"


def is_protocol(kind: object) -> bool:
    return isinstance(kind, type) and Protocol in kind.__bases__


PROTOCOLS = [Provider, *filter(is_protocol, vars(abilities).values())]


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: protocol.__name__)
def test_nobody_has_every_ability_and_refuses_each_call(protocol: type) -> None:
    names = [name for name, _ in inspect.getmembers(protocol, inspect.isfunction) if name[0] != "_"]
    assert names
    for name in names:
        method = inspect.getattr_static(Nobody(), name)  # as isinstance looks, from Python 3.12 on
        with pytest.raises(PoolRemoved):
            method()
