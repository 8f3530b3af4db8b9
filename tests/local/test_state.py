"""Options, the private folder, its lock, and processes told apart from their pids."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from infra.local.options import BadOption, Options
from infra.local.process import Process
from infra.local.state import AlreadyRunning, Card, Lock, State, write_private


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PORT", "http"),
        ("PORT", "-1"),
        ("PORT", "65536"),
        ("PORT", "8080 "),
        ("PORT", "٣"),
        ("PORT", "9" * 5000),
        ("STATE", ""),
        ("STATE", "/"),
        ("STATE", __file__),
        ("STATE", "~"),
        ("NETS", "sweep,luck"),
        ("CRASH_AT", "soon"),
    ],
)
def test_a_bad_option_is_named(name: str, value: str) -> None:
    with pytest.raises(BadOption, match=name):
        Options.of({name: os.path.expanduser(value)})


def test_the_defaults_are_port_8080_and_a_folder_here() -> None:
    options = Options.of({"PORT": ""})
    assert (options.port, options.state) == (8080, Path(".state").absolute())
    assert options.crash_at is None
    assert Options.of({"CRASH_AT": "0"}).crash_at == 0


def test_the_folder_and_its_files_are_for_their_owner_only(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir(mode=0o777)
    state = State(tmp_path / "s")
    state.prepare()
    first = state.secret(state.pepper)
    assert state.secret(state.pepper) == first
    assert len(first) == 32
    assert stat.S_IMODE(state.path.stat().st_mode) == 0o700
    assert stat.S_IMODE(state.pepper.stat().st_mode) == 0o600


def test_a_folder_of_somebody_else_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").touch()
    tmp_path.chmod(0o755)
    with pytest.raises(BadOption, match="holds other files"):
        State(tmp_path).prepare()
    assert not State(tmp_path).exists
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755
    (tmp_path / "pools.toml").touch()  # written before the first start
    State(tmp_path).prepare()
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700


def test_the_home_folder_may_be_named_by_its_sign() -> None:
    assert Options.of({"STATE": "~/boxes"}).state == Path.home() / "boxes"
    with pytest.raises(BadOption, match="STATE"):
        Options.of({"STATE": "~nobody-of-this-name/boxes"})


def test_a_stop_that_is_dead_stops_nothing(tmp_path: Path) -> None:
    state = State(tmp_path)
    mine = Process.of(os.getpid())
    assert mine is not None
    assert not state.stopping()
    Card(mine, "").write(state.stopper)
    assert state.stopping()
    Card(Process(os.getpid(), "another time"), "").write(state.stopper)
    assert not state.stopping()


def test_a_folder_that_cannot_be_made_is_a_bad_option(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BadOption, match="STATE"):
        State(tmp_path / "file" / "below").prepare()


def test_one_router_at_a_time_holds_the_folder(tmp_path: Path) -> None:
    state = State(tmp_path)
    assert not state.locked()
    lock = Lock(state)
    assert state.locked()
    with pytest.raises(AlreadyRunning):
        Lock(state)
    lock.release()
    Lock(state).release()


def test_the_card_of_a_dead_router_names_nobody(tmp_path: Path) -> None:
    state = State(tmp_path)
    mine = Process.of(os.getpid())
    assert mine is not None
    Card(mine, "http://127.0.0.1:1").write(state.card)
    assert state.router() is None  # nobody holds the lock
    lock = Lock(state)
    assert state.router() == Card(mine, "http://127.0.0.1:1")
    Card(Process(os.getpid(), "another time"), "http://127.0.0.1:1").write(state.card)
    assert state.router() is None  # the pid came back as somebody else
    write_private(state.card, b"{}")
    assert state.router() is None
    lock.release()


def test_a_process_is_its_pid_and_its_start() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    process = Process.of(child.pid)
    assert process is not None
    assert process.alive
    assert not Process(process.pid, "another time").alive
    assert not process.ended_within(0.05)
    child.communicate(b"\n")
    assert process.ended_within(1)
    assert Process.of(child.pid) is None
