"""Reconcile goes on: what one instance or one pool is denied keeps nothing from the others."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from sandbox_router.model.failure import NotFound, StoreBusy
from sandbox_router.model.naming import account, identity
from sandbox_router.model.pool import Pool
from sandbox_router.ports import Order, Provider
from sandbox_router.table import Item, Key
from tests.sim.world import SHAPE, TENANT
from tests.unit.core.scenes import Scene

HOUR_MS = 3_600_000


@pytest.fixture
def scene() -> Scene:
    return Scene()


def orphan(scene: Scene, sandbox: str, pool: str = "alpha") -> str:
    """An old instance of ours whose record is not there; its id."""
    tags = {
        "constal-tenant": TENANT,
        "constal-namespace": "default",
        "constal-account": account("deployment-1"),
        "constal-sandbox-id": sandbox,
        "constal-sandbox": identity("deployment-1", sandbox, 1),
    }
    return scene.vendor(pool)._born(Order("r-x", "base", SHAPE, tags, 86_400), -HOUR_MS).id


def test_a_store_that_does_not_take_one_mark_takes_the_next(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = orphan(scene, "sbx-a"), orphan(scene, "sbx-b")
    store = vars(scene.router)["_store"]
    put = store.put

    def once(key: Key, item: Item) -> None:
        monkeypatch.setattr(store, "put", put)
        raise StoreBusy

    monkeypatch.setattr(store, "put", once)
    report = scene.router.reconcile()[0]
    assert (report.failed, report.complete) == (StoreBusy.code, True)
    marks = {str(i["sk"]) for i in scene.memory.items() if "first_seen" in i}
    assert len(marks & {f"SEEN#{first}", f"SEEN#{second}"}) == 1


def test_a_pool_that_is_no_longer_configured_keeps_no_other_pool_from_its_pass(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = orphan(scene, "sbx-a", "beta")
    whole = scene.pools

    class Renewed:
        """Pools of which the first has gone between two looks."""

        def all(self) -> Sequence[Pool]:
            return whole.all()

        def pool(self, pool_id: str) -> Pool:
            return whole.pool(pool_id)

        def provider(self, pool_id: str) -> Provider:
            if pool_id == "alpha":
                raise NotFound
            return whole.provider(pool_id)

    monkeypatch.setattr(vars(scene.router)["_reconcile"], "_pools", Renewed())
    alpha, _ = scene.router.reconcile()
    assert (alpha.failed, alpha.complete) == (NotFound.code, False)
    scene.clock.sleep(300)
    assert scene.router.reconcile()[1].destroyed == [left]
