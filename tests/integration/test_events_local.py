"""Events into a local deployment, and its files: the real worker on the embedded backend."""

from __future__ import annotations

import json
import multiprocessing
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adapters.embedded.queue import SqliteQueue
from adapters.journal import Journal
from adapters.system import SystemClock
from functions.edge import wiring
from infra.local.event import event
from infra.local.options import Options
from infra.local.state import State
from sandbox_router.model.event import Event
from sandbox_router.model.failure import StoreBusy
from sandbox_router.router import Filters
from tests.architecture.tree import ROOT

SAMPLE = ROOT / "events/bus/sandbox.create.requested.json"
CANARY = "CANARY-7f3a-x7Qz"
POOLS: dict[str, Any] = {
    "pools": [{"id": "a", "kind": "e2b", "key": "k"}],
    "images": {"default": {"e2b": {"2x4": "base"}}},
    "event_sources": {"acme.orders": {"tenant": "acme", "scopes": ["sandboxes:write"]}},
}


@pytest.fixture
def state(tmp_path: Path) -> Iterator[State]:
    found = State(tmp_path / "state")
    found.prepare()
    found.secret(found.pepper)
    found.pools.write_text(json.dumps(POOLS))
    yield found
    wiring.use(wiring.build)


def sent(state: State, path: Path) -> int:
    return event(Options.of({"STATE": str(state.path)}), {}, str(path))


def changed(tmp_path: Path, **more: Any) -> Path:
    path = tmp_path / "event.json"
    path.write_text(json.dumps({**json.loads(SAMPLE.read_text()), **more}))
    return path


def test_an_event_from_a_file_is_taken_once(
    state: State, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        assert sent(state, SAMPLE) == 0
    assert "taken" in capsys.readouterr().out
    boxes, _ = wiring.router().list("acme", Filters(), limit=10, cursor=None)
    assert [box.labels for box in boxes] == [{"order": "4711"}]
    queue = SqliteQueue(state.path / "queue.db", SystemClock())
    now = SystemClock().now() + 1_000
    assert {m.record_id for m in queue.receive("create", 10, 1, now)} == {boxes[0].id}
    queue.close()


def test_a_refused_event_is_a_private_line_without_values(
    state: State, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sent(state, changed(tmp_path, detail={"env": {"TOKEN": CANARY}})) == 1
    assert "dead-letters.jsonl" in capsys.readouterr().out
    letters = state.path / "dead-letters.jsonl"
    assert stat.S_IMODE(letters.stat().st_mode) == 0o600
    (letter,) = (json.loads(line) for line in letters.read_text().splitlines())
    assert (letter["code"], letter["detail_keys"]) == ("unsupported", ["env"])
    for path in state.path.rglob("*"):
        assert not path.is_file() or CANARY.encode() not in path.read_bytes()


def test_what_is_no_event_or_no_deployment_is_said(state: State, tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text("{")
    assert sent(state, tmp_path / "bad.json") == 2
    assert sent(state, tmp_path / "none.json") == 2
    state.pools.write_text("{")
    assert sent(state, SAMPLE) == 2
    state.pepper.unlink()
    assert sent(state, SAMPLE) == 2


@pytest.mark.parametrize("words", [["event"], ["stop", "x.json"]])
def test_the_command_line_says_what_it_wants(tmp_path: Path, words: list[str]) -> None:
    command = [sys.executable, "-m", "infra.local", *words]
    env = {**os.environ, "STATE": str(tmp_path)}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, check=False)
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr


def happened(n: int) -> Event:
    return Event(f"evt-{n}", "sandbox.state.changed", n, {"event_id": f"evt-{n}", "text": "é" * n})


def test_a_journal_holds_events_as_lines_and_survives_a_torn_one(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    Journal(path).publish([happened(1), happened(2)])
    with path.open("ab") as file:
        file.write(b'{"id": "evt-torn')
    Journal(path).publish([happened(3)])
    Journal(path).publish([])
    lines = path.read_text().splitlines()
    assert [json.loads(lines[n])["id"] for n in (0, 1, 3)] == ["evt-1", "evt-2", "evt-3"]
    assert len(lines) == 4
    assert json.loads(lines[0]) == {
        "id": "evt-1",
        "source": "sandbox-router",
        "detail-type": "sandbox.state.changed",
        "time": "1970-01-01T00:00:00.001Z",
        "detail": {"event_id": "evt-1", "text": "é"},
    }


def test_a_journal_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    with pytest.raises(StoreBusy):
        Journal(tmp_path / "no" / "events.jsonl").publish([happened(1)])


def many(path: Path, start: int) -> None:
    for n in range(start, start + 50):
        Journal(path).publish([happened(n)])


def test_processes_may_write_one_journal(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    spawn = multiprocessing.get_context("spawn")
    others = [spawn.Process(target=many, args=(path, n * 50)) for n in range(2)]
    for other in others:
        other.start()
    for other in others:
        other.join(30)
    found = [json.loads(line)["detail"]["event_id"] for line in path.read_text().splitlines()]
    assert sorted(found) == sorted(f"evt-{n}" for n in range(100))
