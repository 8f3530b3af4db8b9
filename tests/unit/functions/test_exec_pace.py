"""The pace of a command's events: as they come, pings in silence, and both ends leaving."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

import pytest

from functions.edge import sse
from functions.edge.stream import Streamed
from sandbox_router.ports import Command, Exit, Output, Ref
from tests.unit.functions.test_exec_events import EVENTS, out, told
from tests.unit.functions.world import World, event


@pytest.fixture
def box(world: World) -> str:
    return world.created()


def started(box: str, **body: Any) -> Streamed:
    """The answer while the command runs."""
    from functions.api.run_command import handler

    body = {"command": "x", **body}
    answer = handler(event("run_command", path={"id": box}, body=body, headers=EVENTS), None)
    assert isinstance(answer, Streamed)
    return answer


class Held:
    """A command that speaks when it is let, and knows when it was ended."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self.world, self.monkeypatch = world, monkeypatch
        self.gate, self.ended = threading.Semaphore(0), threading.Event()
        self.asked = 0
        self.said: list[Output | Exit] = []
        monkeypatch.setattr(world.first, "run", self.run)

    def run(self, ref: Ref, command: Command) -> Iterator[Output | Exit]:
        try:
            for item in self.said:
                assert self.gate.acquire(timeout=10)
                self.asked += 1
                yield item
        finally:
            self.ended.set()


@pytest.fixture
def held(world: World, monkeypatch: pytest.MonkeyPatch) -> Held:
    return Held(world, monkeypatch)


@pytest.fixture
def pace(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def set_pace(**seconds: Any) -> None:
        monkeypatch.setattr(sse, "PACE", replace(sse.PACE, **seconds))

    return set_pace


def test_frames_come_while_the_command_runs(
    box: str, held: Held, pace: Callable[..., None]
) -> None:
    pace(first=0.01)
    held.said = [out(b"one"), out(b"two"), Exit(0)]
    frames = started(box).frames
    assert b"event: started" in next(frames)  # though it has said nothing yet
    for word in (b"one", b"two"):
        held.gate.release()
        assert word in next(frames)
    held.gate.release()
    assert b"event: exit" in next(frames)
    assert list(frames) == []
    assert held.ended.wait(5)


def test_silence_is_filled_with_pings(box: str, held: Held, pace: Callable[..., None]) -> None:
    pace(first=0.0, ping=0.03)
    held.said = [out(b""), out(b""), Exit(0)]
    frames = started(box).frames
    next(frames)
    assert next(frames) == b": ping\n\n"
    held.gate.release(2)  # signs of life are no frames: still silence
    assert next(frames) == b": ping\n\n"
    held.gate.release()
    rest = told(b"id: 1\nevent: started\ndata: {}\n\n" + b"".join(frames))
    assert rest[-1][0] == "exit"


def test_pings_keep_their_distance(box: str, held: Held, pace: Callable[..., None]) -> None:
    pace(first=0.0, ping=0.1)
    held.said = [out(b"x"), Exit(0)]
    frames = started(box).frames
    next(frames)
    threading.Timer(0.05, held.gate.release).start()
    threading.Timer(0.35, held.gate.release).start()
    names = [frame.split(b"\n")[0] for frame in frames]
    assert names[0] == b"id: 2"
    assert 1 <= names.count(b": ping") <= 3


def test_the_command_runs_in_the_context_of_its_call(box: str, held: Held) -> None:
    whose: ContextVar[str] = ContextVar("whose", default="nobody's")
    seen: list[str] = []

    def run(ref: Ref, command: Command) -> Iterator[Output | Exit]:
        seen.append(whose.get())
        yield Exit(0)

    held.monkeypatch.setattr(held.world.first, "run", run)
    token = whose.set("ours")
    list(started(box).frames)
    whose.reset(token)
    assert seen == ["ours"]


def test_a_client_that_leaves_ends_the_command(box: str, held: Held) -> None:
    held.said = [out(b"x")] * 100
    held.gate.release(100)
    answer = started(box)
    next(answer.frames)
    answer.frames.close()  # type: ignore[attr-defined]
    assert held.ended.is_set()
    assert list(answer.frames) == []
    assert held.asked < 100


def test_leaving_wakes_who_waits_and_reaches_a_silent_command(
    box: str, held: Held, pace: Callable[..., None]
) -> None:
    pace(first=0.0, ending=0.0)
    held.said = [out(b""), Exit(0)]
    frames = started(box).frames
    next(frames)
    timer = threading.Timer(0.05, frames.close)  # type: ignore[attr-defined]
    timer.start()
    began = time.monotonic()
    assert list(frames) == []
    assert time.monotonic() - began < 5
    timer.join()
    assert not held.ended.is_set()
    held.gate.release()  # the next sign of life
    assert held.ended.wait(5)


def test_a_slow_client_slows_the_command(box: str, held: Held) -> None:
    held.said = [*[out(b"x")] * 50, Exit(0)]
    held.gate.release(51)
    frames = started(box).frames
    next(frames)
    time.sleep(0.05)
    assert held.asked <= sse.PACE.ahead + 1
    assert len(list(frames)) == 51


def test_a_client_that_reads_nothing_does_not_hold_the_command(
    box: str, held: Held, pace: Callable[..., None]
) -> None:
    pace(slack=0.0)
    held.said = [*[out(b"x")] * 50, Exit(0)]
    held.gate.release(51)
    frames = started(box, timeout_seconds=0.1).frames
    assert held.ended.wait(5)
    found = told(b"".join(frames))
    assert found[-1][0] == "error"
    assert found[-1][1]["outcome"] == "unknown"
    assert found[-1][1]["detail"] == "The output was not taken in time"


def test_a_provider_that_never_ends_is_left(
    box: str, held: Held, pace: Callable[..., None]
) -> None:
    pace(slack=0.0, first=0.0)
    held.said = [out(b"")] * 5
    found = told(b"".join(started(box, timeout_seconds=0.1).frames))
    assert [name for name, _ in found] == ["started", "error"]
    held.gate.release()
    assert held.ended.wait(5)
    assert held.asked == 1


def test_the_overhead_leaves_out_the_wait_for_the_provider(box: str, held: Held) -> None:
    held.said = [Exit(0)]
    threading.Timer(0.3, held.gate.release).start()
    assert float(started(box).headers["X-Router-Overhead-Ms"]) < 250
