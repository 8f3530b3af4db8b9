"""A host that is there and does not answer is waited for; it is never forgotten, nor doubled."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from infra.local import hosting, pools
from infra.local.hosting import HostFailed
from infra.local.options import Options
from infra.local.run import FAILED, OK
from infra.local.state import State
from infra.local.stop import stop

pytestmark = pytest.mark.slow


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[State]:
    found = State(tmp_path / "state")
    found.prepare()
    pools.prepare(found)
    started: list[subprocess.Popen[bytes]] = []
    real = subprocess.Popen

    def noted(*args: Any, **more: Any) -> subprocess.Popen[bytes]:
        started.append(real(*args, **more))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", noted)
    yield found
    for child in started:
        child.send_signal(signal.SIGCONT)
        child.terminate()
        child.wait(20)


def test_a_host_that_hangs_is_neither_forgotten_nor_started_twice(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = hosting.start(state)
    monkeypatch.setattr(hosting, "START_SECONDS", 1.0)
    host.process.signal(signal.SIGSTOP)
    assert hosting.find(state) is None
    with pytest.raises(HostFailed, match="does not answer"):
        hosting.start(state)
    host.process.signal(signal.SIGCONT)
    assert hosting.find(state) == host


def test_stop_says_that_a_host_that_hangs_may_still_run_something(
    state: State, capsys: pytest.CaptureFixture[str]
) -> None:
    host = hosting.start(state)
    host.process.signal(signal.SIGSTOP)
    assert stop(Options(0, state.path), {}) == FAILED
    assert str(state.host_json) in capsys.readouterr().err
    host.process.signal(signal.SIGCONT)
    assert stop(Options(0, state.path), {}) == OK
    assert not host.process.alive


def test_a_host_that_comes_back_while_a_router_starts_is_taken(state: State) -> None:
    host = hosting.start(state)
    host.process.signal(signal.SIGSTOP)
    waking = threading.Timer(1.0, host.process.signal, (signal.SIGCONT,))
    waking.start()
    assert hosting.start(state) == host
    waking.join()


def test_a_killed_host_is_followed_by_another(state: State) -> None:
    host = hosting.start(state)
    host.process.signal(signal.SIGKILL)
    assert host.process.ended_within(5)
    assert hosting.find(state) is None
    assert hosting.start(state).process != host.process


def test_a_host_its_operator_starts_at_the_same_time_is_taken(state: State) -> None:
    command = [sys.executable, "-m", "infra.local.host", "--state", str(state.host)]
    files = ["--config", str(state.host_config), "--announce", str(state.host_json)]
    children = [subprocess.Popen(command + files, cwd=hosting.ROOT) for _ in range(2)]
    assert hosting.start(state) == hosting.find(state)
    assert all(child.poll() in (None, 2) for child in children)
