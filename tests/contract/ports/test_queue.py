"""The Queue port and the worker's side of it: delayed, at least once, and no look is lost."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.embedded.queue import SqliteQueue
from sandbox_router.ports import Message
from tests.contract.ports.conftest import Queues
from tests.fakes.clock import FakeClock
from tests.fakes.queue import MemoryQueue

GRAIN_MS, POLL_SECONDS = 100, 0.05


def received(queues: Queues, visibility: float = 120) -> Message:
    (message,) = queues.queue.receive("create", 1, visibility, queues.clock.now())
    return message


def test_a_message_sent_for_now_is_there_now(queues: Queues) -> None:
    queues.queue.send("create", "sbx-a")
    assert queues.queue.waiting("create") == 1
    assert queues.look() == ["sbx-a"]
    assert queues.look() == []
    assert queues.queue.waiting("create") == 0


@pytest.mark.parametrize("delay", [0.001, 0.05, 1, 1.234, 179.9999, 900])
def test_a_delayed_message_comes_at_its_time_and_never_before(queues: Queues, delay: float) -> None:
    queues.clock.at(queues.clock.now() + 37)
    due = queues.clock.now() + math.ceil(delay * 1000)
    queues.queue.send("create", "sbx-a", delay)
    queues.clock.at(due - 1)
    assert queues.look() == []
    queues.clock.at(due + GRAIN_MS)
    assert queues.look() == ["sbx-a"]


@pytest.mark.parametrize("delay", [900.001, math.inf, math.nan])
def test_a_delay_is_at_most_fifteen_minutes(queues: Queues, delay: float) -> None:
    with pytest.raises(ValueError, match="900"):
        queues.queue.send("create", "sbx-a", delay)


def test_a_time_past_is_now(queues: Queues) -> None:
    queues.queue.send("create", "sbx-a", -5)
    assert queues.look() == ["sbx-a"]


def test_queues_do_not_see_each_other(queues: Queues) -> None:
    queues.queue.send("create", "sbx-a")
    queues.queue.send("teardown", "sbx-a")
    assert queues.look("teardown") == ["sbx-a"]
    assert queues.queue.waiting("create") == 1


def test_the_most_overdue_comes_first_and_no_more_than_asked(queues: Queues) -> None:
    for name, delay in (("c", 3), ("a", 1), ("b", 2), ("late", 60)):
        queues.queue.send("create", name, delay)
    queues.clock.sleep(10)
    assert queues.look(limit=2) == ["a", "b"]
    assert queues.look(limit=2) == ["c"]


@pytest.mark.parametrize("delay", [0, 5])
def test_equal_looks_are_one_message(queues: Queues, delay: float) -> None:
    for _ in range(3):
        queues.queue.send("create", "sbx-a", delay)
    queues.queue.send("create", "sbx-b", delay)
    assert queues.queue.waiting("create") == 2


def test_an_overdue_look_takes_in_one_for_now(queues: Queues) -> None:
    queues.queue.send("create", "sbx-a", 1)
    queues.clock.sleep(5)
    queues.queue.send("create", "sbx-a")
    assert queues.queue.waiting("create") == 1


@pytest.mark.parametrize(("first", "second"), [(0, 5), (5, 0), (1, 5), (5, 1), (0, 0.5)])
def test_looks_at_different_times_are_both_kept(
    queues: Queues, first: float, second: float
) -> None:
    queues.queue.send("create", "sbx-a", first)
    queues.queue.send("create", "sbx-a", second)
    queues.clock.at(queues.clock.now() + round(min(first, second) * 1000) + GRAIN_MS)
    assert queues.look() == ["sbx-a"]
    queues.clock.sleep(10)
    assert queues.look() == ["sbx-a"]


def test_a_look_that_has_begun_takes_in_nothing(queues: Queues) -> None:
    queues.queue.send("create", "sbx-a")
    message = received(queues)
    queues.queue.send("create", "sbx-a")
    queues.queue.done(message)
    assert queues.look() == ["sbx-a"]


def test_an_expired_look_takes_in_nothing_as_it_may_still_end(queues: Queues) -> None:
    queues.queue.send("create", "sbx-a")
    message = received(queues, visibility=1)
    queues.clock.sleep(2)
    queues.queue.send("create", "sbx-a")
    queues.queue.done(message)
    assert queues.look() == ["sbx-a"]


def test_what_is_in_hand_is_hidden_until_its_visibility_ends(queues: Queues) -> None:
    queues.queue.send("create", "sbx-a")
    first = received(queues)
    assert (first.record_id, first.received) == ("sbx-a", 1)
    assert queues.queue.waiting("create") == 0
    queues.clock.sleep(119)
    assert queues.look() == []
    queues.clock.sleep(1)
    second = received(queues)
    assert (second.record_id, second.received) == ("sbx-a", 2)


def test_a_late_done_does_not_take_the_message_from_its_new_holder(queues: Queues) -> None:
    queues.queue.send("create", "sbx-a")
    late = received(queues, visibility=1)
    queues.clock.sleep(2)
    received(queues, visibility=5)
    queues.queue.done(late)
    queues.queue.later(late, 0)
    assert queues.look() == []
    queues.clock.sleep(5)
    assert queues.look() == ["sbx-a"]


def test_later_makes_it_wait_again(queues: Queues) -> None:
    queues.queue.send("create", "sbx-a")
    queues.queue.later(received(queues), 4)
    assert queues.queue.waiting("create") == 1
    queues.clock.sleep(3.9)
    assert queues.look() == []
    queues.clock.sleep(0.2)
    assert received(queues).received == 2


def test_a_receipt_fits_no_later_message(queues: Queues) -> None:
    queues.queue.send("create", "sbx-a")
    old = received(queues)
    queues.queue.done(old)
    queues.queue.send("create", "sbx-b")
    received(queues, visibility=1)
    queues.queue.done(old)
    queues.clock.sleep(2)
    assert queues.look() == ["sbx-b"]


def test_what_a_dead_worker_had_in_hand_is_taken_up_at_once(queues: Queues) -> None:
    queues.queue.send("create", "sbx-a")
    queues.queue.send("create", "sbx-b")
    queues.queue.send("teardown", "sbx-c", 60)
    received(queues)
    queues.queue = queues.reborn()
    assert queues.queue.reclaim() == 1
    assert sorted(queues.look()) == ["sbx-a", "sbx-b"]
    assert queues.queue.waiting("teardown") == 1


def test_a_worker_does_not_reclaim_what_it_has_in_hand_itself(queues: Queues) -> None:
    queues.queue.send("create", "sbx-a")
    received(queues)
    assert queues.queue.reclaim() == 0
    assert queues.look() == []


def test_messages_outlive_their_process(queues: Queues) -> None:
    queues.queue.send("create", "sbx-a")
    queues.queue.send("create", "sbx-a", 5)
    queues.queue = queues.reborn()
    assert queues.look() == ["sbx-a"]
    queues.clock.sleep(6)
    assert queues.look() == ["sbx-a"]


DELAYS = st.sampled_from([0, 0, 0.05, 0.1, 0.95, 1, 1.05, 3]) | st.floats(0, 4)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["send", "send", "look", "fail", "wait"]), st.sampled_from("ab"), DELAYS
    ),
    max_size=30,
)


@pytest.fixture(scope="module", params=["memory", "sqlite"])
def long_lived(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[MemoryQueue | SqliteQueue, FakeClock]]:
    clock = FakeClock()
    if request.param == "memory":
        yield MemoryQueue(clock), clock
        return
    sqlite = SqliteQueue(tmp_path_factory.mktemp("queue") / "queue.db", clock)
    yield sqlite, clock
    sqlite.close()


@settings(deadline=None, max_examples=80)
@given(STEPS)
def test_every_look_asked_for_happens_at_its_time_or_at_most_a_grain_later(
    long_lived: tuple[MemoryQueue | SqliteQueue, FakeClock], steps: list[tuple[str, str, float]]
) -> None:
    queue, clock = long_lived
    wanted: list[tuple[str, int]] = []
    looks: list[tuple[str, int]] = []

    def look(fails: bool = False) -> None:
        for message in queue.receive("create", 10, 120, clock.now()):
            if fails:
                queue.later(message, 0)
            else:
                looks.append((message.record_id, clock.now()))
                queue.done(message)

    def wait(seconds: float) -> None:
        end = clock.now() + seconds * 1000
        while clock.now() < end:
            look()
            clock.sleep(POLL_SECONDS)
        look()

    wait(5)  # what a failed example left
    for kind, name, delay in [*steps, ("wait", "a", 5.0)]:
        if kind == "send":
            queue.send("create", name, delay)
            wanted.append((name, clock.now() + math.ceil(delay * 1000)))
        elif kind == "wait":
            wait(delay)
        else:
            look(fails=kind == "fail")
    for name, at in wanted:
        late = min(when - at for seen, when in looks if seen == name and when >= at)
        assert late <= GRAIN_MS + POLL_SECONDS * 1000
    assert queue.waiting("create") == 0
