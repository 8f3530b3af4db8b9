"""Lost is what two looks, far enough apart, call gone; and nothing less."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from sandbox_router.model.failure import Gone, NotRunning, NotRunningYet, Unsupported
from sandbox_router.model.sandbox import Sandbox, State
from sandbox_router.ports import Command, Content, Exit, Output, Ref
from tests.fakes.clock import START
from tests.sim.world import TENANT
from tests.unit.core.scenes import Scene, Vendor


@pytest.fixture
def scene() -> Scene:
    return Scene(lag_ms=5_000)


def looked(scene: Scene, id_: str) -> Sandbox:
    return scene.router.get(TENANT, id_, refresh=True)


def dies(scene: Scene) -> None:
    scene.living()[0].dead_at = scene.clock.now()


def test_one_look_that_says_gone_is_not_believed(scene: Scene) -> None:
    id_ = scene.made().id
    dies(scene)
    seen = looked(scene, id_)
    assert (seen.state, seen.missing_since, seen.due_at) == (State.RUNNING, START, START + 5_000)


def test_looks_closer_than_the_list_lag_are_one_look(scene: Scene) -> None:
    id_ = scene.made().id
    dies(scene)
    for _ in range(4):
        assert looked(scene, id_).state is State.RUNNING
        scene.clock.sleep(1)
    scene.clock.sleep(1)
    assert looked(scene, id_).state is State.LOST


def test_the_second_look_comes_by_itself(scene: Scene) -> None:
    id_ = scene.made().id
    dies(scene)
    looked(scene, id_)
    lost = scene.until(State.LOST, seconds=6)
    assert (lost.state_reason, lost.ended_at) == ("instance_gone", START + 5_000)
    assert len(scene.vendor().times("get")) == 2
    assert lost.settled


def test_what_is_back_at_the_second_look_was_never_missing(scene: Scene) -> None:
    id_ = scene.made().id
    (vendor,) = scene.living()
    vendor.dead_at = scene.clock.now()
    looked(scene, id_)
    vendor.dead_at = None
    scene.on(6)
    assert (scene.seen(id_).state, scene.seen(id_).missing_since) == (State.RUNNING, None)


def test_looks_that_fail_are_a_second_apart_where_lists_are_never_behind() -> None:
    scene = Scene(lag_ms=0)
    id_ = scene.made().id
    before = len(scene.vendor().times("get"))
    scene.vendor().script("get", "absent", *["cut"] * 99)
    looked(scene, id_)
    scene.on(10)
    assert len(scene.vendor().times("get")) - before <= 12
    assert scene.seen(id_).state is State.RUNNING


def test_a_second_look_that_fails_says_nothing_and_is_repeated(scene: Scene) -> None:
    id_ = scene.made().id
    dies(scene)
    looked(scene, id_)
    scene.vendor().script("get", "cut", "unauthorized")
    scene.on(6)
    assert scene.seen(id_).state is State.RUNNING
    scene.until(State.LOST, seconds=20)
    assert len(scene.vendor().times("get")) == 4


def test_a_look_that_fails_changes_nothing_and_answers_the_record(scene: Scene) -> None:
    id_ = scene.made().id
    scene.vendor().script("get", "cut")
    before = scene.seen(id_)
    after = looked(scene, id_)
    assert (after.state, after.missing_since) == (State.RUNNING, None)
    assert after.observed_at == before.observed_at


def test_a_destroyed_instance_is_destroyed_and_not_lost(scene: Scene) -> None:
    id_ = scene.made().id
    dies(scene)
    looked(scene, id_)
    scene.router.destroy(TENANT, id_)
    assert scene.seen(id_).state is State.DESTROYED


def test_a_look_before_it_runs_looks_at_what_is_being_made(scene: Scene) -> None:
    id_ = scene.ask(wait=0).record_id or ""
    assert looked(scene, id_).state is State.RUNNING


class Live(Vendor):
    """An account with commands and files, whose instance has just gone."""

    def run(self, ref: Ref, command: Command) -> Iterator[Output | Exit]:
        yield Output("stdout", b"cut off")
        raise Gone

    def read_file(self, ref: Ref, path: str, limit: int) -> Any:
        raise Gone

    def write_file(self, ref: Ref, path: str, content: Content) -> None:
        raise Gone

    def move_file(self, ref: Ref, source: str, destination: str) -> None:
        raise Gone

    def remove_file(self, ref: Ref, path: str) -> None:
        raise Gone

    def list_directory(self, ref: Ref, path: str) -> Any:
        raise Gone

    def open_port(self, ref: Ref, port: int) -> Any:
        raise Gone

    def close_port(self, ref: Ref, port: int) -> None:
        raise Gone


CALLS: dict[str, Callable[[Scene, str], Any]] = {
    "run": lambda s, id_: list(s.router.run(TENANT, id_, Command(shell="true"))),
    "read_file": lambda s, id_: s.router.read_file(TENANT, id_, "/a", 9),
    "write_file": lambda s, id_: s.router.write_file(TENANT, id_, "/a", b""),
    "remove_file": lambda s, id_: s.router.remove_file(TENANT, id_, "/a"),
    "list_directory": lambda s, id_: s.router.list_directory(TENANT, id_, "/"),
    "open_port": lambda s, id_: s.router.open_port(TENANT, id_, 80),
    "close_port": lambda s, id_: s.router.close_port(TENANT, id_, 80),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_call_that_finds_the_instance_gone_has_it_looked_at(scene: Scene, call: str) -> None:
    id_ = scene.made().id
    inner = scene.vendor()
    live = Live("alpha", inner.clock, boxes=inner.boxes)
    scene.providers["alpha"] = live
    dies(scene)
    with pytest.raises(Gone):
        CALLS[call](scene, id_)
    assert scene.seen(id_).missing_since == START
    scene.until(State.LOST, seconds=6)


@pytest.mark.parametrize("call", CALLS)
def test_a_call_is_for_what_runs_and_for_what_the_provider_can(scene: Scene, call: str) -> None:
    id_ = scene.ask(wait=0).record_id or ""
    with pytest.raises(NotRunningYet) as soon:
        CALLS[call](scene, id_)
    assert soon.value.retry_after == 1
    scene.on(1)
    with pytest.raises(Unsupported):
        CALLS[call](scene, id_)
    scene.router.pause(TENANT, id_)
    with pytest.raises(NotRunning) as paused:
        CALLS[call](scene, id_)
    assert type(paused.value) is NotRunning
    assert [op for op, _ in scene.vendor().calls] == ["create", "pause"]
