"""What a provider is told of a sandbox: identity, tags, shape, lifetime; and the windows opened."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sandbox_router.model.naming import identity_tags
from sandbox_router.model.record import Outcome
from sandbox_router.model.sandbox import State
from sandbox_router.ports import Order
from tests.fakes.clock import START
from tests.sim.world import SHAPE
from tests.unit.core.scenes import Scene, Vendor


@pytest.fixture
def scene() -> Scene:
    return Scene()


def orders(vendor: Vendor) -> list[Order]:
    """Every order from here on, as the vendor sees it."""
    seen: list[Order] = []
    vendor.on_create = seen.append
    return seen


def test_an_order_names_the_prepared_image_its_shape_and_all_tags(scene: Scene) -> None:
    seen = orders(scene.vendor())
    box = scene.made(labels={"team": "a/b c", "constal-tenant": "forged"})
    (order,) = seen
    assert (order.reference, order.shape) == ("base", SHAPE)
    ours = identity_tags("deployment-1", box, box.attempts[0])
    assert order.tags == {"team": "a/b c", **ours}
    assert order.tags["constal-tenant"] == "acme"
    assert order.identity == ours["constal-sandbox"] == box.attempts[0].identity


def test_every_attempt_has_an_identity_of_its_own_and_keeps_it_when_it_is_repeated(
    scene: Scene,
) -> None:
    alpha, beta = orders(scene.vendor("alpha")), orders(scene.vendor("beta"))
    scene.vendor("alpha").script("create", "cut", "cut")
    scene.ask(wait=25)
    assert alpha[0] == alpha[1]
    assert alpha[0].identity != beta[0].identity


@pytest.mark.parametrize(
    ("ttl", "cap", "told"), [(600, None, 660), (600, 600, 600), (600, 630, 630), (600, 661, 660)]
)
def test_the_providers_own_limit_is_a_margin_above_ours_and_within_its_cap(
    scene: Scene, ttl: int, cap: int | None, told: int
) -> None:
    scene.pools._pools[0] = replace(scene.pools._pools[0], max_ttl=cap)
    seen = orders(scene.vendor())
    scene.made(ttl_seconds=ttl)
    assert seen[0].lifetime_seconds == told


def test_the_windows_of_a_crashed_create_open_when_it_is_doubted_and_not_before() -> None:
    scene = Scene(idempotent=False)
    scene.crash_at = 5  # intended; nobody will ever know whether it was sent
    assert scene.create(ttl=3600) is None
    scene.clock.sleep(300)
    scene.router.advance(scene.box().id)
    (attempt,) = scene.box().attempts
    assert attempt.outcome is Outcome.UNKNOWN
    assert attempt.settle_until == START + 320_000
    assert attempt.window_until == START + 900_000


def test_the_next_pool_is_asked_for_what_is_prepared_there(scene: Scene) -> None:
    pool = scene.pools._pools[1]
    prepared = replace(pool.images["default"][0], reference="other")
    scene.pools._pools[1] = replace(pool, images={"default": (prepared,)})
    seen = orders(scene.vendor("beta"))
    scene.vendor("alpha").script("create", "capacity")
    scene.made()
    assert seen[0].reference == "other"


def test_later_calls_go_to_the_recorded_pool_though_it_left_the_route(scene: Scene) -> None:
    box = scene.made()
    scene.pools._pools[0] = replace(scene.pools._pools[0], draining=True)
    assert scene.made().attempts[0].pool_id == "beta"
    scene.router.pause("acme", box.id)
    scene.router.destroy("acme", box.id)
    assert scene.seen(box.id).state is State.DESTROYED
    assert [op for op, _ in scene.vendor("alpha").calls] == ["create", "pause", "destroy", "get"]
