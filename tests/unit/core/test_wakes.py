"""Who looks at a sandbox next: messages for what is near, the sweep for the rest."""

from __future__ import annotations

import pytest

from adapters.embedded.queue import delayed
from sandbox_router.model.failure import Conflicted
from sandbox_router.model.sandbox import State
from tests.fakes.clock import START
from tests.fakes.queue import _Entry
from tests.sim.world import TENANT
from tests.unit.core.scenes import Scene


@pytest.fixture
def scene() -> Scene:
    return Scene()


def waiting(scene: Scene, queue: str) -> list[float]:
    """When the messages of a queue are due, in seconds from now."""
    entries = vars(scene.queue)["_entries"].values()
    return sorted((e.due - scene.clock.now()) / 1000 for e in entries if e.queue == queue)


def test_a_deadline_within_three_minutes_is_sent_by_its_writer(scene: Scene) -> None:
    scene.made(ttl_seconds=180)
    assert waiting(scene, "teardown") == [180]


def test_a_later_deadline_is_left_to_the_sweep(scene: Scene) -> None:
    scene.made(ttl_seconds=181)
    assert waiting(scene, "teardown") == []
    assert scene.router.sweep() == 0
    scene.clock.sleep(1)
    assert scene.router.sweep() == 1
    assert waiting(scene, "teardown") == [180]


def test_a_create_handed_over_goes_to_the_queue_of_creates_at_once(scene: Scene) -> None:
    scene.ask(wait=0)
    assert waiting(scene, "create") == [0]
    assert waiting(scene, "teardown") == []


def test_the_sweep_finds_what_is_overdue_and_puts_it_where_its_state_belongs(scene: Scene) -> None:
    for n in range(40):
        scene.made(ttl_seconds=240)
        scene.ask(f"k{n}", wait=0)
    vars(scene.queue)["_entries"].clear()  # every send was lost
    scene.clock.sleep(300)
    assert scene.router.sweep() == 80
    assert (waiting(scene, "create"), waiting(scene, "teardown")) == ([0] * 40, [0] * 40)


def test_a_lost_send_delays_the_end_by_two_minutes_at_most(scene: Scene) -> None:
    scene.made(ttl_seconds=60)
    vars(scene.queue)["_entries"].clear()
    scene.until(State.DESTROYED, seconds=60 + 120)
    assert scene.clock.now() <= START + 180_000


def test_an_early_message_does_nothing_and_the_one_for_the_time_is_there(scene: Scene) -> None:
    box = scene.made(ttl_seconds=100)
    scene.clock.sleep(40)
    before, calls = scene.memory.items(), scene.calls()
    scene.router.advance(box.id)
    assert (scene.memory.items(), scene.calls()) == (before, calls)
    assert 60 in waiting(scene, "teardown")


def test_a_message_twice_or_for_nobody_does_nothing_more(scene: Scene) -> None:
    box = scene.made(ttl_seconds=60)
    scene.clock.sleep(60)
    scene.router.advance(box.id)
    after, calls = scene.memory.items(), scene.calls()
    assert scene.seen(box.id).state is State.DESTROYED
    scene.router.advance(box.id)
    scene.router.advance("sbx-nobody")
    assert (scene.memory.items(), scene.calls()) == (after, calls)


def test_a_finished_sandbox_wakes_nobody_any_more(scene: Scene) -> None:
    scene.router.destroy(TENANT, scene.made(ttl_seconds=60).id)
    scene.settle()
    vars(scene.queue)["_entries"].clear()
    scene.router.advance(scene.box().id)
    scene.clock.sleep(3600)
    assert scene.router.sweep() == 0
    assert waiting(scene, "teardown") == []
    assert scene.box().due_at is None


def test_who_cannot_claim_comes_back_when_the_lease_is_over(scene: Scene) -> None:
    scene.crash_at = 6
    scene.create(ttl=3600)
    scene.clock.sleep(10)
    scene.router.advance(scene.box().id)
    assert waiting(scene, "create") == [20]


def test_a_refused_destroy_comes_back_at_its_time(scene: Scene) -> None:
    box = scene.made()
    scene.vendor().answers["destroy"] = [Conflicted()]
    scene.router.destroy(TENANT, box.id)
    assert waiting(scene, "teardown") == [1]


def test_messages_do_not_pile_up_while_a_destroy_is_refused(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Queues elsewhere merge nothing: what is sent on must end by itself."""
    entries, numbers = vars(scene.queue)["_entries"], vars(scene.queue)["_numbers"]

    def send(queue: str, record_id: str, delay_seconds: float = 0) -> None:
        due = delayed(scene.clock.now(), delay_seconds)
        entries[next(numbers)] = _Entry(queue, record_id, due)

    monkeypatch.setattr(scene.queue, "send", send)
    box = scene.made()
    scene.vendor().answers["destroy"] = [Conflicted()] * 1000
    scene.router.destroy(TENANT, box.id)
    most = 0
    for _ in range(60):
        scene.on(60)
        most = max(most, len(waiting(scene, "teardown")))
    assert 20 <= len(scene.vendor().times("destroy")) <= 100
    assert most <= 4


def test_a_message_sent_on_is_for_clocks_that_differ(scene: Scene) -> None:
    box = scene.made(ttl_seconds=100)
    vars(scene.queue)["_entries"].clear()
    scene.clock.sleep(94)
    scene.router.advance(box.id)
    assert waiting(scene, "teardown") == []
    scene.clock.sleep(1)
    scene.router.advance(box.id)
    assert waiting(scene, "teardown") == [5]


def test_a_wish_that_was_dealt_with_elsewhere_leaves_no_due_date_behind(scene: Scene) -> None:
    box = scene.made(ttl_seconds=3600)
    scene.router.resume(TENANT, box.id)
    scene.between = lambda: scene.router.get(TENANT, box.id, refresh=True)
    scene.moment = lambda point: point == "table.query"
    scene.router.get(TENANT, box.id, refresh=True)
    scene.on(90)
    assert scene.seen(box.id).due_at == box.expires_at


def test_a_record_nobody_can_read_does_not_stop_the_sweep(scene: Scene) -> None:
    broken, sound = scene.made(ttl_seconds=60), scene.made(ttl_seconds=60)
    key = (f"SBX#{broken.id}", "A")
    item = dict(scene.memory.get(key) or {})
    scene.memory.replace(key, {**item, "state": "asleep"})
    scene.clock.sleep(60)
    assert scene.router.sweep() == 2
    scene.router.advance(sound.id)
    assert scene.seen(sound.id).state is State.DESTROYED
