"""Counting port calls, and dying right before the n-th of them."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Protocol, runtime_checkable

import pytest

from infra.local.crash import Counter, acting
from infra.local.proxy_event import Call


@runtime_checkable
class Sings(Protocol):
    def sing(self, times: int) -> str: ...


@runtime_checkable
class Dances(Protocol):
    def dance(self) -> None: ...


class Bird:
    def __init__(self) -> None:
        self.weight = 1

    def sing(self, times: int) -> str:
        self.weight += 1
        return "la" * times


def call(method: str, path: str) -> Call:
    return Call(method, path, "", [], b"", "127.0.0.1", "HTTP/1.1", "r")


def test_a_counted_port_is_what_it_was(tmp_path: Path) -> None:
    bird = Counter(0, tmp_path / "calls").wrap(Bird())
    assert isinstance(bird, Sings)
    assert not isinstance(bird, Dances)
    assert bird.sing(2) == "lala"
    assert bird.weight == 2


def test_calls_count_from_the_first_create_and_only_on_behalf_of_sandboxes(tmp_path: Path) -> None:
    counter = Counter(0, tmp_path / "calls")
    bird = counter.wrap(Bird())
    with acting():
        bird.sing(1)
    with counter.serving(call("GET", "/v1/sandboxes")):
        bird.sing(1)
    assert not (tmp_path / "calls").exists()
    with counter.serving(call("POST", "/v1/sandboxes")):
        bird.sing(1)
    bird.sing(1)  # nobody acts: a sweep
    with acting():
        bird.sing(1)
    assert (tmp_path / "calls").read_text() == "1 Bird.sing\n2 Bird.sing\n"


@pytest.mark.parametrize("at", [1, 2, 3])
def test_the_process_dies_before_the_call(tmp_path: Path, at: int) -> None:
    code = f"""
from pathlib import Path
from infra.local.crash import Counter
from tests.local.test_crash import Bird, call
counter = Counter({at}, Path({str(tmp_path / "calls")!r}))
bird = counter.wrap(Bird())
with counter.serving(call("POST", "/v1/sandboxes")):
    for n in range(2):
        bird.sing(1)
        print(n, flush=True)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    assert done.stdout == "".join(f"{n}\n" for n in range(min(at - 1, 2)))
    assert done.returncode == (-signal.SIGKILL if at <= 2 else 0)
