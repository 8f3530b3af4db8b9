"""Commands, files and ports of a running sandbox, through the handlers."""

from __future__ import annotations

import base64
import json

import pytest

from functions.edge.stream import Streamed
from sandbox_router.model.failure import Gone, Unknown
from sandbox_router.ports import Exit, Output
from tests.unit.functions.world import World, event, invoke, on

MIB = 1024 * 1024


def out(data: bytes) -> Output:
    return Output("stdout", data)


def err(data: bytes) -> Output:
    return Output("stderr", data)


@pytest.fixture
def box(world: World) -> str:
    return world.created()


def test_a_command_answers_with_its_output(world: World, box: str) -> None:
    world.first.events.append([out(b"hi "), err(b"oops"), out("th\u00e9re".encode()), Exit(3)])
    body = {"argv": ["sh", "-c", "x"], "cwd": "/tmp", "env": {"A": "b"}, "stdin": "in"}
    got = on("run_command", box, body=body)
    assert got.status == 200
    answer = got.json
    assert answer.pop("exec_id").startswith("exec-")
    assert answer == {
        "exit_code": 3,
        "stdout": "hi th\u00e9re",
        "stderr": "oops",
        "timed_out": False,
        "truncated": {"stdout_bytes": 0, "stderr_bytes": 0},
        "duration_ms": 0,
        "stderr_mode": "separate",
    }
    (command,) = world.first.commands
    assert (command.argv, command.cwd, command.stdin) == (("sh", "-c", "x"), "/tmp", b"in")
    assert command.env["A"].reveal() == "b"
    assert command.timeout_seconds == 60


def test_a_streaming_function_answers_in_frames(world: World, box: str) -> None:
    from functions.api.run_command import handler

    world.first.events.append([Exit(0)])
    given = event("run_command", path={"id": box}, body={"command": "true"})
    answer = handler(given, None)
    assert isinstance(answer, Streamed)
    assert answer.status == 200
    assert json.loads(b"".join(answer.frames))["exit_code"] == 0


def test_output_that_is_no_text_comes_exact_too(world: World, box: str) -> None:
    world.first.events.append([out(b"\xff\x00ok"), Exit(None, signal="KILL", timed_out=True)])
    answer = on("run_command", box, body={"command": "x"}).json
    assert answer["stdout"] == "\ufffd\x00ok"
    assert base64.b64decode(answer["stdout_b64"]) == b"\xff\x00ok"
    assert "stderr_b64" not in answer
    assert (answer["exit_code"], answer["signal"], answer["timed_out"]) == (None, "KILL", True)


def test_output_is_bounded_counted_and_drained(world: World, box: str) -> None:
    world.first.events.append([out("\u20ac".encode() * 100), err(b"x" * 8), out(b"!"), Exit(0)])
    answer = on("run_command", box, body={"command": "x", "max_output_bytes": 7}).json
    assert answer["stdout"] == "\u20ac\u20ac"  # no third of a character
    assert answer["truncated"] == {"stdout_bytes": 295, "stderr_bytes": 1}
    assert "stdout_b64" not in answer
    assert answer["exit_code"] == 0


@pytest.mark.parametrize("data", [b"\x00", b"\xff", b"a"])
def test_the_whole_answer_stays_under_its_limit(world: World, box: str, data: bytes) -> None:
    world.first.events.append([out(data * 4 * MIB), err(data * 4 * MIB), Exit(0)])
    got = on("run_command", box, body={"command": "x", "max_output_bytes": 4 * MIB})
    assert len(got.data) <= 4 * MIB
    assert got.json["truncated"]["stdout_bytes"] > 0


@pytest.mark.parametrize("accept", ["*/*", "text/event-stream, application/json", "", "text/html"])
def test_any_other_accept_gets_json(world: World, box: str, accept: str) -> None:
    world.first.events.append([Exit(0)])
    assert on("run_command", box, body={"command": "x"}, headers={"Accept": accept}).status == 200


@pytest.mark.parametrize("events", [[out(b"x"), Unknown()], [out(b"x")]])
def test_a_lost_answer_is_an_unknown_outcome(world: World, box: str, events: list[Output]) -> None:
    world.first.events.append([*events])
    got = on("run_command", box, body={"command": "x"})
    assert (got.status, got.code, got.json["outcome"]) == (502, "unknown_outcome", "unknown")
    assert len(world.first.commands) == 1


def test_a_sandbox_that_is_gone_is_409(world: World, box: str) -> None:
    world.first.events.append([Gone()])
    got = on("run_command", box, body={"command": "x"})
    assert (got.status, got.code) == (409, "instance_gone")


def test_a_sandbox_that_does_not_run_is_409(world: World) -> None:
    got = invoke("create_sandbox", event("create_sandbox", body={}, headers={"Prefer": "wait=0"}))
    early = on("run_command", got.json["id"], body={"command": "x"})
    assert (early.status, early.json["retryable"]) == (409, True)


@pytest.mark.parametrize("data", [b"", b"\x00\xff\r\n", bytes(range(256)) * 4096 * 4])
def test_files_are_byte_exact(world: World, box: str, data: bytes) -> None:
    at = {"path": "/a b/%2e%2e/\u00e9%252e"}
    assert on("write_file", box, query=at, body=data).status == 204
    assert world.first.files == {at["path"]: data}
    got = on("read_file", box, query=at)
    assert (got.status, got.data) == (200, data)
    assert got.headers["content-type"] == "application/octet-stream"
    assert on("remove_file", box, query=at).status == 204
    assert on("read_file", box, query=at).code == "file_not_found"


def test_a_text_upload_is_taken_as_it_came(world: World, box: str) -> None:
    headers = {"Content-Type": "text/plain"}
    got = on("write_file", box, query={"path": "/t"}, body="h\u00e9", headers=headers)
    assert got.status == 204
    assert world.first.files["/t"] == "h\u00e9".encode()


def test_files_have_a_limit_both_ways(world: World, box: str) -> None:
    over = b"x" * (4 * MIB + 1)
    got = on("write_file", box, query={"path": "/x"}, body=over)
    assert (got.status, got.code) == (413, "too_large")
    world.first.files["/x"] = over
    assert on("read_file", box, query={"path": "/x"}).status == 413


def test_a_directory_lists_its_entries(world: World, box: str) -> None:
    world.first.files |= {"/d/a": b"1", "/d/\udcff": b""}
    got = on("list_directory", box, query={"path": "/d"})
    assert got.json["data"][0] == {
        "name": "a",
        "path": "/d/a",
        "kind": "file",
        "size": 1,
        "modified_at": "1970-01-01T00:00:01.000Z",
    }
    assert got.json["data"][1]["name"] == "?"


def test_a_port_opens_and_closes(world: World, box: str) -> None:
    got = on("open_port", box, path={"port": "3000"})
    assert got.json == {
        "url": "https://3000-box.example",
        "headers": {"x-token": "preview"},
        "visibility": "private",
        "expires_at": None,
    }
    assert on("close_port", box, path={"port": "3000"}).status == 204


@pytest.mark.parametrize("port", ["0", "65536", "-1", "x", "1.0", "\u0663", "999999999999"])
def test_a_port_is_a_port(world: World, box: str, port: str) -> None:
    assert on("open_port", box, path={"port": port}).code == "invalid_request"
