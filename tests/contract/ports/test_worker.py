"""The worker loop of one machine, with real threads and the real clock."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from adapters.embedded import worker
from adapters.embedded.queue import SqliteQueue
from adapters.embedded.worker import WorkerLoop
from adapters.system import SystemClock
from sandbox_router.model.failure import StoreBusy
from sandbox_router.ports import Clock, Message
from tests.fakes.clock import FakeClock

LATE_SECONDS = 0.3
Start = Callable[..., WorkerLoop]


def nothing() -> int:
    return 0


def until(true: Callable[[], object], seconds: float = 5) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.002)


@pytest.fixture
def open_queue(folder: Path) -> Iterator[Callable[..., SqliteQueue]]:
    opened: list[SqliteQueue] = []

    def open(clock: Clock | None = None) -> SqliteQueue:
        opened.append(SqliteQueue(folder / "queue.db", clock or SystemClock()))
        return opened[-1]

    yield open
    for queue in opened:
        queue.close()


@pytest.fixture
def start(open_queue: Callable[..., SqliteQueue]) -> Iterator[Start]:
    started: list[WorkerLoop] = []

    def start(
        queue: SqliteQueue,
        advance: Callable[[str], object],
        sweep: Callable[[], object] = nothing,
        clock: Clock | None = None,
        **more: object,
    ) -> WorkerLoop:
        loop = WorkerLoop(queue, advance, sweep, clock or SystemClock(), **more)  # type: ignore[arg-type]
        started.append(loop)
        loop.start()
        return loop

    yield start
    for loop in started:
        loop.stop()


@pytest.mark.parametrize("delay", [0, 0.35])
@pytest.mark.parametrize("own", [True, False], ids=["own sends", "another process's sends"])
def test_a_message_is_handled_soon_after_it_is_due_and_never_before(
    open_queue: Callable[..., SqliteQueue], start: Start, own: bool, delay: float
) -> None:
    handled: dict[str, float] = {}
    queue = open_queue()
    start(queue, lambda name: handled.setdefault(name, time.time()))
    sender = queue if own else open_queue()
    due: dict[str, float] = {}
    for number in range(20):
        due[f"sbx-{number}"] = time.time() + delay
        sender.send("create", f"sbx-{number}", delay)
        time.sleep(0.013)
    until(lambda: len(handled) == len(due))
    late = [handled[name] - at for name, at in due.items()]
    assert min(late) >= -0.001
    assert max(late) <= LATE_SECONDS


def test_teardown_does_not_wait_behind_creates(
    open_queue: Callable[..., SqliteQueue], start: Start
) -> None:
    stuck, torn = threading.Event(), threading.Event()
    queue = open_queue()

    def advance(name: str) -> None:
        if name.startswith("create"):
            stuck.wait(10)
        else:
            torn.set()

    for number in range(40):
        queue.send("create", f"create-{number}")
    start(queue, advance, threads=2)
    time.sleep(0.1)
    queue.send("teardown", "sbx-a")
    assert torn.wait(LATE_SECONDS)
    stuck.set()


def test_as_many_messages_as_threads_are_handled_at_once(
    open_queue: Callable[..., SqliteQueue], start: Start
) -> None:
    queue, meeting = open_queue(), threading.Barrier(5)
    for number in range(4):
        queue.send("create", f"sbx-{number}")
    start(queue, lambda _: meeting.wait(5), threads=4)
    meeting.wait(5)


def test_a_failing_message_stops_nothing_and_comes_again_later_and_later(
    open_queue: Callable[..., SqliteQueue], start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    clock, tries, others = FakeClock(), list[int](), list[str]()

    def advance(name: str) -> None:
        if name == "bad":
            tries.append(clock.now() // 1000)
            raise ValueError("a value nobody may see")
        others.append(name)

    queue = open_queue(clock)
    with caplog.at_level(logging.DEBUG):
        start(queue, advance, clock=clock)
        queue.send("create", "bad")
        for number, pause in enumerate([1, 2, 4, 8, 16, 32, 60, 60]):
            until(lambda n=number: len(tries) == n + 1 and queue.waiting("create"))  # type: ignore[misc]
            clock.sleep(pause - 0.2)
            time.sleep(0.06)
            assert len(tries) == number + 1
            clock.sleep(0.3)
        queue.send("create", "good")
        until(lambda: others == ["good"])
    assert "ValueError" in caplog.text
    assert "nobody may see" not in caplog.text
    assert "bad" not in caplog.text


def test_what_a_dead_worker_had_in_hand_is_taken_up_at_once(
    open_queue: Callable[..., SqliteQueue], start: Start
) -> None:
    dead = open_queue()
    dead.send("create", "sbx-a")
    dead.receive("create", 1, 120, SystemClock().now())
    seen = list[str]()
    start(open_queue(), seen.append)
    until(lambda: seen == ["sbx-a"], LATE_SECONDS)


def test_a_message_in_hand_is_not_handed_out_again(
    open_queue: Callable[..., SqliteQueue], start: Start
) -> None:
    seen, end = list[str](), threading.Event()

    def advance(name: str) -> None:
        seen.append(name)
        end.wait(5)

    queue = open_queue()
    queue.send("create", "sbx-a")
    start(queue, advance)
    until(lambda: seen)
    time.sleep(0.2)
    end.set()
    time.sleep(0.1)
    assert seen == ["sbx-a"]
    assert queue.receive("create", 1, 1, 2**60) == []


def test_it_sweeps_at_the_start_and_again_and_whatever_fails(
    open_queue: Callable[..., SqliteQueue], start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert worker.SWEEP_SECONDS == 60
    monkeypatch.setattr(worker, "SWEEP_SECONDS", 0.05)
    swept, purged = list[int](), list[int]()

    def sweep() -> int:
        swept.append(1)
        raise StoreBusy

    start(open_queue(), nothing, sweep, chores=[(0.05, lambda: purged.append(1)), (60, nothing)])
    until(lambda: len(swept) > 3 and len(purged) > 3)


def test_a_slow_chore_does_not_hold_up_the_sweep(
    open_queue: Callable[..., SqliteQueue], start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "SWEEP_SECONDS", 0.05)
    swept, end = list[int](), threading.Event()
    start(open_queue(), nothing, lambda: swept.append(1), chores=[(60, lambda: end.wait(5))])
    until(lambda: len(swept) > 2, 1)
    end.set()


def test_a_queue_in_trouble_stops_nothing(
    open_queue: Callable[..., SqliteQueue], start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue, seen, troubles = open_queue(), list[str](), list[int]()
    receive = queue.receive

    def broken(*args: object) -> list[Message]:
        if len(troubles) < 3:
            troubles.append(1)
            raise StoreBusy
        return receive(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(queue, "receive", broken)
    queue.send("create", "sbx-a")
    start(queue, seen.append)
    until(lambda: seen == ["sbx-a"])


def test_stopping_an_idle_loop_is_quick(
    open_queue: Callable[..., SqliteQueue], start: Start
) -> None:
    loop = start(open_queue(), nothing)
    begun = time.monotonic()
    assert loop.stop()
    assert time.monotonic() - begun < 0.5


def test_stopping_lets_the_running_finish_and_leaves_the_rest(
    open_queue: Callable[..., SqliteQueue], start: Start
) -> None:
    begun, ended = list[str](), list[str]()

    def advance(name: str) -> None:
        begun.append(name)
        time.sleep(0.3)
        ended.append(name)

    queue = open_queue()
    for number in range(6):
        queue.send("create", f"sbx-{number}")
    loop = start(queue, advance, threads=2)
    until(lambda: len(begun) == 2)
    assert loop.stop()
    assert len(ended) == 2
    assert queue.waiting("create") == 4


def test_stopping_does_not_wait_for_what_hangs_and_the_next_worker_takes_it(
    open_queue: Callable[..., SqliteQueue], start: Start
) -> None:
    begun, end, seen = threading.Event(), threading.Event(), list[str]()

    def hang(_: str) -> None:
        begun.set()
        end.wait(10)

    queue = open_queue()
    queue.send("create", "sbx-a")
    loop = start(queue, hang)
    assert begun.wait(1)
    stopped = time.monotonic()
    assert not loop.stop()
    assert 1.5 < time.monotonic() - stopped < 2.3
    start(open_queue(), seen.append)
    until(lambda: seen == ["sbx-a"], LATE_SECONDS)
    end.set()
