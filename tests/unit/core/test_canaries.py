"""Secrets of a request: in memory, or sealed while it waits, and nowhere else."""

from __future__ import annotations

import base64
import logging
import traceback

import pytest

from sandbox_router.model.failure import Failure, Rejected
from sandbox_router.model.sandbox import State
from sandbox_router.ports import Order
from tests.fakes.account import Box
from tests.sim.world import TENANT
from tests.unit.core.scenes import Scene

CANARY = "CANARY-TOKEN"
FORMS = (
    CANARY,
    CANARY[:10],
    CANARY[::-1],
    base64.b64encode(CANARY.encode()).decode().rstrip("="),
    CANARY.encode().hex(),
)


def stored(scene: Scene) -> str:
    """Everything that outlives the process."""
    return repr([scene.memory.items(), vars(scene.queue)["_entries"]])


def clean(text: str) -> None:
    assert [form for form in FORMS if form in text] == []


def values(scene: Scene, vendor: str = "alpha") -> list[str]:
    """What the vendor's instances were given."""
    boxes: list[Box] = list(scene.providers[vendor].boxes.values())
    return [box.order.cargo.env["TOKEN"].reveal() for box in boxes]


@pytest.fixture
def scene(caplog: pytest.LogCaptureFixture) -> Scene:
    caplog.set_level(logging.DEBUG)
    return Scene()


FAULTS = ["ok", "lost", "cut", "capacity", "forbidden", "invalid", "unauthorized"]


@pytest.mark.case("A18")
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("wait", [0.0, 20.0])
def test_no_store_queue_log_or_answer_ever_holds_a_value(
    scene: Scene, caplog: pytest.LogCaptureFixture, fault: str, wait: float
) -> None:
    seen: list[str] = []
    scene.vendor().script("create", fault)
    scene.watch = lambda point: seen.append(stored(scene))
    reply = scene.ask(env_names=("TOKEN",), wait=wait)
    scene.on(30)
    for id_ in (box.id for box in scene.boxes()):
        scene.router.destroy(TENANT, id_)
    scene.settle()
    clean("".join(seen) + stored(scene))
    clean(reply.body + repr(reply) + caplog.text)
    assert len(seen) > 10


def test_while_the_client_waits_nothing_is_sealed_at_all(scene: Scene) -> None:
    sealed: list[bool] = []

    def watch(point: str) -> None:
        sealed.append(any("sealed" in item for item in scene.memory.items()))

    scene.watch = watch
    scene.vendor().script("create", "capacity")
    assert scene.ask(env_names=("TOKEN",)).status == 201
    assert not any(sealed)
    assert values(scene, "beta") == [CANARY]


def test_it_is_sealed_at_hand_over_opened_by_the_worker_and_erased_when_it_runs(
    scene: Scene,
) -> None:
    scene.ask(env_names=("TOKEN",), wait=0)
    assert scene.box().sealed is not None
    scene.until(State.RUNNING)
    assert scene.box().sealed is None
    assert values(scene) == [CANARY]


def test_a_create_that_outlives_its_client_is_sealed_by_the_release(scene: Scene) -> None:
    scene.vendor().boots_ms = 60_000
    assert scene.ask(env_names=("TOKEN",), wait=2).status == 202
    assert scene.box().sealed is not None
    scene.until(State.RUNNING)
    assert scene.box().sealed is None


@pytest.mark.parametrize("end", ["destroy", "forbidden", "deadline"])
def test_it_is_erased_however_the_start_ends(scene: Scene, end: str) -> None:
    scene.vendor().boots_ms = 10**7
    if end == "forbidden":
        scene.vendor().script("create", "forbidden")
    scene.ask(env_names=("TOKEN",), wait=0, ttl_seconds=60)
    if end == "destroy":
        scene.router.destroy(TENANT, scene.box().id)
    scene.on(90)
    assert scene.box().state.terminal
    assert scene.box().sealed is None


def test_without_env_nothing_is_ever_sealed(scene: Scene) -> None:
    scene.ask(wait=0)
    assert scene.box().sealed is None


@pytest.mark.case("A18")
def test_a_provider_that_quotes_it_is_not_quoted(scene: Scene) -> None:
    def quote(order: Order) -> None:
        raise Rejected from ValueError(f"bad env {order.cargo.env['TOKEN'].reveal()}")

    scene.vendor().on_create = quote
    reply = scene.ask(env_names=("TOKEN",))
    assert reply.status == 422
    clean(reply.body + stored(scene))


def test_a_failure_that_is_raised_through_a_create_shows_no_value(scene: Scene) -> None:
    scene.ask(env_names=("TOKEN",))
    with pytest.raises(Failure) as refused:
        scene.ask(env_names=("TOKEN",), ttl_seconds=60)
    clean("".join(traceback.format_exception(refused.value)) + repr(refused.value))


def test_the_names_are_shown_and_the_values_are_not(scene: Scene) -> None:
    reply = scene.ask(env_names=("TOKEN", "OTHER"))
    assert '"env_names":["TOKEN","OTHER"]' in reply.body
    clean(reply.body)
