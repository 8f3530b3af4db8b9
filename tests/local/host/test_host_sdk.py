"""The vendor's official SDK completes its life cycle against the host."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from e2b import (
    CommandExitException,
    NotFoundException,
    Sandbox,
    SandboxException,
    SandboxQuery,
    SandboxState,
    TimeoutException,
)
from e2b.exceptions import AuthenticationException

from tests.local.host.hosting import KEYS, Host

Make = Callable[..., Sandbox]


@pytest.fixture
def options(host: Host) -> dict[str, Any]:
    return {
        "api_url": f"{host.url}/e2b",
        "sandbox_url": f"{host.url}/e2b/sandbox",
        "api_key": KEYS["alpha"],
    }


@pytest.fixture
def make(options: dict[str, Any]) -> Make:
    def create(**wanted: Any) -> Sandbox:
        made: Sandbox = Sandbox.create(**{"timeout": 60} | wanted | options)
        return made

    return create


@pytest.fixture
def sandbox(make: Make) -> Iterator[Sandbox]:
    made = make(metadata={"purpose": "test"}, envs={"FROM_CREATE": "one"})
    yield made
    made.kill()


def test_a_command_returns_its_output_and_code(sandbox: Sandbox) -> None:
    done = sandbox.commands.run(
        "echo $FROM_CREATE $MORE; echo wrong >&2; pwd", envs={"MORE": "two"}
    )
    assert (done.stdout, done.stderr, done.exit_code) == ("one two\n/home/user\n", "wrong\n", 0)
    assert sandbox.commands.run("pwd", cwd="/tmp").stdout == "/tmp\n"


def test_a_failing_command_raises_with_its_code(sandbox: Sandbox) -> None:
    with pytest.raises(CommandExitException) as caught:
        sandbox.commands.run("echo so far; exit 7")
    assert (caught.value.exit_code, caught.value.stdout) == (7, "so far\n")


def test_output_arrives_while_the_command_runs(sandbox: Sandbox) -> None:
    seen: list[tuple[float, str]] = []
    began = time.monotonic()
    sandbox.commands.run(
        "echo first; sleep 0.5; echo second",
        on_stdout=lambda text: seen.append((time.monotonic() - began, text)),
    )
    assert [text for _, text in seen] == ["first\n", "second\n"]
    assert seen[0][0] < 0.4 < seen[1][0]


def test_a_timeout_ends_the_command_and_all_its_children(sandbox: Sandbox) -> None:
    marker = f"{3600 + secrets.randbelow(10**6)}"
    with pytest.raises(TimeoutException):
        sandbox.commands.run(f"sleep {marker} & sh -c 'sleep {marker}; true'; wait", timeout=0.5)
    left = sandbox.commands.run(f"ps -eo args | grep -c '^sleep {marker}' || true").stdout
    assert left == "0\n"


def test_a_background_command_is_listed_joined_and_killed(sandbox: Sandbox) -> None:
    handle = sandbox.commands.run("echo started; sleep 1000", background=True)
    assert [one.pid for one in sandbox.commands.list()] == [handle.pid]
    joined = sandbox.commands.connect(handle.pid)
    assert sandbox.commands.kill(handle.pid)
    for one in (handle, joined):
        with pytest.raises(CommandExitException) as caught:
            one.wait()
        assert (caught.value.exit_code, caught.value.error) == (-1, "signal: killed")
    assert not sandbox.commands.kill(handle.pid)
    assert sandbox.commands.list() == []


def test_children_left_in_the_background_outlive_their_command(sandbox: Sandbox) -> None:
    pid = sandbox.commands.run("nohup sleep 1000 & echo $!").stdout.strip()
    assert sandbox.commands.run(f"kill -0 {pid} && echo alive").stdout == "alive\n"
    # It still holds the finished command's stdout: writing there must not kill it.
    sandbox.commands.run("(sleep 0.3; echo late; touch survived) &")
    time.sleep(0.8)
    assert sandbox.files.exists("survived")


def test_stdin_reaches_the_command(sandbox: Sandbox) -> None:
    handle = sandbox.commands.run("cat", background=True, stdin=True)
    sandbox.commands.send_stdin(handle.pid, "first ")
    sandbox.commands.stream_input(handle.pid, ["second ", "third"])
    sandbox.commands.close_stdin(handle.pid)
    assert handle.wait().stdout == "first second third"


def test_large_output_arrives_whole(sandbox: Sandbox) -> None:
    done = sandbox.commands.run("head -c 3000000 /dev/zero | tr '\\0' x; echo; echo end >&2")
    assert (len(done.stdout), done.stderr) == (3_000_001, "end\n")


def test_files_are_byte_exact(sandbox: Sandbox) -> None:
    content = bytes(range(256)) * 4000
    sandbox.files.write("deep/er/data.bin", content)
    assert bytes(sandbox.files.read("deep/er/data.bin", format="bytes")) == content
    stream = b"".join(sandbox.files.read("/home/user/deep/er/data.bin", format="stream"))
    assert stream == content
    sandbox.files.write("packed", content, gzip=True)
    assert bytes(sandbox.files.read("packed", format="bytes")) == content
    assert (
        sandbox.commands.run("cmp packed deep/er/data.bin && stat -c %U packed").stdout == "user\n"
    )


def test_files_are_listed_moved_and_removed(sandbox: Sandbox) -> None:
    assert sandbox.files.make_dir("a/b")
    assert not sandbox.files.make_dir("a/b")
    sandbox.files.write_files(
        [{"path": "a/one", "data": "1"}, {"path": "/home/user/a/b/two", "data": b"22"}]
    )
    sandbox.commands.run("ln -s one a/link")
    found = {one.path: one for one in sandbox.files.list("a", depth=2)}
    assert sorted(found) == [f"/home/user/a/{name}" for name in ("b", "b/two", "link", "one")]
    assert found["/home/user/a/b/two"].size == 2
    assert found["/home/user/a/link"].symlink_target == "one"
    assert sandbox.files.get_info("a/b").permissions == "drwxr-xr-x"
    assert sandbox.files.rename("a/one", "c/uno").path == "/home/user/c/uno"
    sandbox.files.remove("a")
    assert not sandbox.files.exists("a")
    assert sandbox.files.read("c/uno") == "1"
    with pytest.raises(NotFoundException):
        sandbox.files.read("a/one")


def test_lists_filter_by_metadata_and_come_in_pages(make: Make, options: dict[str, Any]) -> None:
    tag = {"example.com/owner": "a b&c=d/é", "run": secrets.token_hex(8)}
    made = {make(metadata=tag | {"n": str(n)}).sandbox_id for n in range(5)}
    make(metadata={"run": "another"})
    pages = Sandbox.list(query=SandboxQuery(metadata=tag), limit=2, **options)
    found = []
    while pages.has_next:
        page = pages.next_items()
        assert len(page) <= 2
        found += [one.sandbox_id for one in page]
    assert len(found) == 5
    assert set(found) == made


def test_pausing_keeps_memory_and_disk(sandbox: Sandbox, options: dict[str, Any]) -> None:
    counter = "i=0; while :; do i=$((i+1)); echo $i > next; mv next count; sleep 0.02; done"
    handle = sandbox.commands.run(counter, background=True)
    time.sleep(0.2)
    assert sandbox.pause()
    assert not sandbox.pause()
    assert sandbox.get_info().state is SandboxState.PAUSED
    query = SandboxQuery(state=[SandboxState.PAUSED], metadata={"purpose": "test"})
    assert [one.sandbox_id for one in Sandbox.list(query=query, **options).next_items()] == [
        sandbox.sandbox_id
    ]
    time.sleep(0.3)
    again = Sandbox.connect(sandbox.sandbox_id, timeout=30, **options)
    first = int(again.files.read("count"))
    time.sleep(0.3)
    assert again.get_info().state is SandboxState.RUNNING
    assert int(again.files.read("count")) > first > 0
    assert again.commands.kill(handle.pid)
    assert again.commands.run("echo on").stdout == "on\n"


def test_the_timeout_moves_and_connect_only_extends(
    sandbox: Sandbox, options: dict[str, Any]
) -> None:
    def left() -> float:
        return (sandbox.get_info().end_at - datetime.now(UTC)).total_seconds()

    sandbox.set_timeout(300)
    assert 295 < left() <= 301
    Sandbox.connect(sandbox.sandbox_id, timeout=10, **options)
    assert left() > 290
    Sandbox.connect(sandbox.sandbox_id, timeout=900, **options)
    assert left() > 890
    sandbox.set_timeout(20)
    assert left() <= 20
    with pytest.raises(SandboxException, match="greater than 24 hours"):
        sandbox.set_timeout(25 * 3600)


def test_metrics_and_details_are_told(sandbox: Sandbox) -> None:
    sandbox.commands.run("head -c 200000 /dev/urandom > noise")
    measured = sandbox.get_metrics()[0]
    assert measured.disk_used >= 200_000
    assert measured.mem_total == 512 * 1024 * 1024
    info = sandbox.get_info()
    assert (info.template_id, info.cpu_count, info.memory_mb) == ("base", 2, 512)
    assert info.metadata == {"purpose": "test"}
    assert sandbox.is_running()


def test_a_killed_sandbox_is_gone_for_good(make: Make, options: dict[str, Any]) -> None:
    sandbox = make()
    assert sandbox.kill()
    assert not sandbox.kill()
    assert not sandbox.is_running()
    with pytest.raises(NotFoundException):
        sandbox.get_info()
    with pytest.raises(SandboxException, match="was not found"):
        sandbox.commands.run("true")


def test_a_wrong_key_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(AuthenticationException):
        Sandbox.create(**options | {"api_key": "e2b_0000"})
