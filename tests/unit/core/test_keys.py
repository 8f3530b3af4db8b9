"""The keys of the table: each begins as a role of the deployment on AWS may touch it."""

from __future__ import annotations

from fnmatch import fnmatchcase

from infra.cloud.grants import RECORDS
from sandbox_router.model.naming import account, identity
from sandbox_router.model.record import Outcome
from sandbox_router.ports import Order
from tests.sim.world import SHAPE, TENANT
from tests.unit.core.scenes import Scene


def orphan(scene: Scene) -> None:
    """An instance of ours, an hour old, whose record is not there."""
    tags = {
        "constal-tenant": TENANT,
        "constal-namespace": "default",
        "constal-account": account("deployment-1"),
        "constal-sandbox-id": "sbx-lost",
        "constal-sandbox": identity("deployment-1", "sbx-lost", 1),
    }
    scene.vendor()._born(Order("r-x", "base", SHAPE, tags, 86_400), -3_600_000)


def test_all_that_a_life_and_reconcile_write_is_under_a_granted_prefix() -> None:
    scene = Scene()
    scene.vendor().script("create", "capacity")
    box = scene.made()
    assert [a.outcome for a in box.attempts] == [Outcome.REFUSED, Outcome.CREATED]
    scene.ask("keyed")
    orphan(scene)
    scene.router.reconcile()
    scene.clock.sleep(300)
    assert scene.router.reconcile()[0].verdicts == {"orphan": 1}
    keys = {str(item["pk"]) for item in scene.memory.items()}
    kinds = {key.partition("#")[0] for key in keys}
    assert kinds == {"SBX", "LOG", "IDEM", "GUARD", "POOL"}
    assert [k for k in keys if not any(fnmatchcase(k, granted) for granted in RECORDS)] == []


def test_a_sighting_is_where_the_role_of_reconcile_may_write() -> None:
    scene = Scene()
    orphan(scene)
    scene.router.reconcile()
    (mark,) = [item for item in scene.memory.items() if "first_seen" in item]
    assert any(fnmatchcase(str(mark["pk"]), granted) for granted in RECORDS)
