"""OpenSandbox's official SDK completes its life cycle against the host."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from opensandbox import SandboxManagerSync, SandboxSync
from opensandbox.config import ConnectionConfigSync
from opensandbox.exceptions import SandboxApiException
from opensandbox.models.execd import RunCommandOpts
from opensandbox.models.execd_sync import ExecutionHandlersSync
from opensandbox.models.filesystem import MoveEntry, SearchEntry, WriteEntry
from opensandbox.models.sandboxes import SandboxFilter

from tests.local.host.hosting import Host
from tests.local.host.opensandbox import CONFIG, KEYS

pytestmark = pytest.mark.xdist_group("opensandbox-host")
Make = Callable[..., SandboxSync]


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    made = Host(config=CONFIG).started()
    yield made
    made.close()


@pytest.fixture
def options(host: Host) -> ConnectionConfigSync:
    domain = f"{host.url.removeprefix('http://')}/opensandbox"
    return ConnectionConfigSync(
        domain=domain, protocol="http", api_key=KEYS["gamma"], use_server_proxy=True
    )


@pytest.fixture
def make(options: ConnectionConfigSync) -> Iterator[Make]:
    made: list[SandboxSync] = []

    def create(**wanted: Any) -> SandboxSync:
        image = wanted.pop("image", "python:3.12")
        wanted = {"timeout": timedelta(minutes=5)} | wanted
        made.append(SandboxSync.create(image, connection_config=options, **wanted))
        return made[-1]

    yield create
    for one in made:
        with suppress(SandboxApiException):  # the test ended it
            one.kill()
        one.close()


@pytest.fixture
def manager(options: ConnectionConfigSync) -> Iterator[SandboxManagerSync]:
    made = SandboxManagerSync.create(connection_config=options)
    yield made
    made.close()


def test_a_command_tells_its_lines_and_its_code(make: Make) -> None:
    sandbox = make(env={"FROM_CREATE": "one"})
    script = "echo $FROM_CREATE $MORE; echo wrong >&2; echo; pwd"
    done = sandbox.commands.run(
        script, opts=RunCommandOpts(envs={"MORE": "two"}, working_directory="/tmp")
    )
    assert [message.text for message in done.logs.stdout] == ["one two", "\n", "/tmp"]
    assert [message.text for message in done.logs.stderr] == ["wrong"]
    assert done.exit_code == 0
    failed = sandbox.commands.run("exit 7")
    assert failed.exit_code == 7
    assert sandbox.commands.run(["printf", "%s|", "a b", "$HOME"]).text == "a b|$HOME|"


def test_output_arrives_while_the_command_runs(make: Make) -> None:
    seen: list[tuple[float, str]] = []
    began = time.monotonic()
    handlers = ExecutionHandlersSync(
        on_stdout=lambda message: seen.append((time.monotonic() - began, message.text))
    )
    make().commands.run("echo first; sleep 0.5; echo second", handlers=handlers)
    assert [text for _, text in seen] == ["first", "second"]
    assert seen[0][0] < 0.4 < seen[1][0]


def test_a_background_command_is_followed_and_interrupted(make: Make) -> None:
    commands = make().commands
    detached = RunCommandOpts(background=True)
    started = commands.run("echo one; sleep 0.3; printf two >&2", opts=detached)
    assert started.id is not None
    assert commands.get_command_status(started.id).running
    time.sleep(0.6)
    status = commands.get_command_status(started.id)
    assert (status.running, status.exit_code) == (False, 0)
    logs = commands.get_background_command_logs(started.id)
    assert (logs.content, logs.cursor) == ("one\ntwo", 7)
    rest = commands.get_background_command_logs(started.id, cursor=4)
    assert (rest.content, rest.cursor) == ("two", 7)
    endless = commands.run("sleep 600", opts=detached)
    assert endless.id is not None
    commands.interrupt(endless.id)
    status = commands.get_command_status(endless.id)
    assert (status.running, status.exit_code, status.error) == (False, -1, "signal: terminated")


def test_a_timeout_ends_a_command(make: Make) -> None:
    began = time.monotonic()
    opts = RunCommandOpts(timeout=timedelta(seconds=0.5))
    done = make().commands.run("sleep 600", opts=opts)
    assert time.monotonic() - began < 2
    assert (done.exit_code, done.error.traceback if done.error else None) == (
        -1,
        ["signal: killed"],
    )


def test_files_come_back_as_they_went(make: Make) -> None:
    files = make().files
    data = bytes(range(256)) * 100
    files.write_files([WriteEntry(path="/tmp/a/b.bin", data=data, mode=600)])
    assert files.read_bytes("/tmp/a/b.bin") == data
    info = files.get_file_info(["/tmp/a/b.bin"])["/tmp/a/b.bin"]
    assert (info.size, info.mode, info.owner) == (len(data), 600, "user")
    files.write_file("/tmp/a/ü.txt", "hällo\n")
    assert files.read_file("/tmp/a/ü.txt") == "hällo\n"
    found = files.search(SearchEntry(path="/tmp/a", pattern="*.txt"))
    assert [entry.path for entry in found] == ["/tmp/a/ü.txt"]
    files.create_directories([WriteEntry(path="/tmp/c/d")])
    files.move_files([MoveEntry(source="/tmp/a/ü.txt", destination="/tmp/c/d/e.txt")])
    assert files.read_file("/tmp/c/d/e.txt") == "hällo\n"
    files.delete_files(["/tmp/a/b.bin"])
    files.delete_directories(["/tmp/c"])
    for path in ("/tmp/a/b.bin", "/tmp/c/d/e.txt"):
        with pytest.raises(SandboxApiException):
            files.read_bytes(path)


def test_metadata_finds_a_sandbox_and_pages_have_an_end(
    make: Make, manager: SandboxManagerSync
) -> None:
    made = [make(metadata={"suite": "paging", "app.example.com/n": str(n)}) for n in range(3)]
    ids = {one.id for one in made}
    seen: list[str] = []
    for page in (1, 2):
        wanted = SandboxFilter(metadata={"suite": "paging"}, page=page, page_size=2)
        found = manager.list_sandbox_infos(wanted)
        seen += [info.id for info in found.sandbox_infos]
        assert found.pagination.has_next_page == (page == 1)
        assert (found.pagination.total_items, found.pagination.total_pages) == (3, 2)
    assert len(seen) == 3
    assert set(seen) == ids
    exact = SandboxFilter(
        metadata={"app.example.com/n": "1", "suite": "paging"}, states=["RUNNING"]
    )
    assert [info.id for info in manager.list_sandbox_infos(exact).sandbox_infos] == [made[1].id]
    none = SandboxFilter(metadata={"app.example.com/n": "9"})
    assert manager.list_sandbox_infos(none).sandbox_infos == []
    changed = manager.patch_sandbox_metadata(made[0].id, {"suite": None, "new": "x"})
    assert changed.metadata == {"app.example.com/n": "0", "new": "x"}


def test_pause_resume_renew_and_kill(make: Make, options: ConnectionConfigSync) -> None:
    sandbox = make()
    sandbox.commands.run("echo kept > /tmp/mark")
    sandbox.pause()
    assert sandbox.get_info().status.state == "Paused"
    resumed = SandboxSync.resume(sandbox.id, connection_config=options)
    assert resumed.commands.run("cat /tmp/mark").text == "kept"
    resumed.close()
    sandbox.renew(timedelta(minutes=30))
    ends = sandbox.get_info().expires_at
    assert ends is not None
    assert timedelta(minutes=29) < ends - datetime.now(UTC) < timedelta(minutes=31)
    metrics = sandbox.get_metrics()
    assert metrics.cpu_count > 0
    assert metrics.memory_total_in_mib > 0
    sandbox.kill()
    with pytest.raises(SandboxApiException, match="NOT_FOUND"):
        sandbox.get_info()


def test_errors_reach_the_sdk_in_the_servers_words(make: Make) -> None:
    with pytest.raises(SandboxApiException, match="INVALID_METADATA_LABEL"):
        make(metadata={"a": "x" * 64})
    with pytest.raises(SandboxApiException, match="SANDBOX_IMAGE_PULL_FAILED"):
        make(image="no/such:1")
