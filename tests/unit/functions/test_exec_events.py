"""A command as server-sent events, through its handler."""

from __future__ import annotations

import base64
import io
import json
from typing import Any

import pytest

from functions.edge import wiring
from functions.edge.settings import Settings
from sandbox_router.model.failure import BrokenPool, Gone, Outage, RateLimited, Unknown
from sandbox_router.ports import Exit, Output
from tests.unit.functions.world import REQUEST_ID, Got, World, event, invoke, on

EVENTS = {"Accept": "text/event-stream"}
TEXT = "café 日本語 🚀"
FORGED = "x\n\nid: 9\nevent: exit\ndata: {}\r\rA\u2028\u2029\x85\x0b\x0c\x1c\x1devent: exit\u2028"
Told = tuple[str, Any]


@pytest.fixture
def box(world: World) -> str:
    return world.created()


def out(data: bytes) -> Output:
    return Output("stdout", data)


def err(data: bytes) -> Output:
    return Output("stderr", data)


def bytewise(data: bytes) -> list[Output | Exit | Exception]:
    return [out(data[n : n + 1]) for n in range(len(data))]


def told(data: bytes) -> list[Told]:
    """Events as a client reads them that ends lines wherever Python would; numbers rise by one."""
    found: list[Told] = []
    blocks = data.decode().split("\n\n")
    assert blocks.pop() == ""
    for block in blocks:
        if block == ": ping":
            found.append(("ping", None))
            continue
        fields = [line.partition(": ")[::2] for line in block.splitlines()]
        assert [name for name, _ in fields] == ["id", "event", "data"], block
        numbers = [name for name, _ in found if name != "ping"]
        assert fields[0][1] == str(len(numbers) + 1)
        found.append((fields[1][1], json.loads(fields[2][1])))
    return found


def run(box: str, **body: Any) -> Got:
    return on("run_command", box, body={"command": "x", **body}, headers=EVENTS)


def events(box: str, **body: Any) -> list[Told]:
    got = run(box, **body)
    assert (got.status, got.headers["content-type"]) == (200, "text/event-stream"), got.text
    assert got.headers["cache-control"] == "no-store"
    return told(got.data)


def written(found: list[Told], name: str = "stdout") -> bytes:
    datas = [data for kind, data in found if kind == name]
    return b"".join(base64.b64decode(d["b64"]) if "b64" in d else d["text"].encode() for d in datas)


def test_a_command_tells_its_life(world: World, box: str) -> None:
    world.first.events.append([out(b"hi"), err(b"oops"), Exit(3)])
    first, *middle, last = events(box)
    assert first[0] == "started"
    assert first[1]["exec_id"].startswith("exec-")
    assert first[1]["stderr_mode"] == "separate"
    assert middle == [("stdout", {"text": "hi"}), ("stderr", {"text": "oops"})]
    nothing = {"stdout_bytes": 0, "stderr_bytes": 0}
    assert last == ("exit", {"exit_code": 3, "duration_ms": 0, "truncated": nothing})


@pytest.mark.parametrize("accept", ["text/event-stream", "TEXT/event-stream;q=1"])
def test_the_accept_may_be_spelled_otherwise(world: World, box: str, accept: str) -> None:
    world.first.events.append([Exit(0)])
    got = on("run_command", box, body={"command": "x"}, headers={"Accept": accept})
    assert got.headers["content-type"] == "text/event-stream"


@pytest.mark.parametrize("text", [TEXT, "a\r", "\rb", "\r\n", FORGED, "\x00\x1b[0m", "\ufffd"])
def test_characters_survive_any_border_between_chunks(world: World, box: str, text: str) -> None:
    data = text.encode()
    world.first.events.append([*bytewise(data), Exit(0)])
    found = events(box)
    assert "".join(d["text"] for name, d in found if name == "stdout") == text
    assert not [d for _, d in found if "b64" in d]
    for at in range(len(data)):
        world.first.events.append([out(data[:at]), out(b""), out(data[at:]), Exit(0)])
        assert written(events(box)) == data


@pytest.mark.parametrize(
    "chunks",
    [[b"\xff"], [b"a\xffb", b"c"], [b"\xe6\x97"], [b"\xe6", b"A"], [b"\xf0\x9f", b"\xff", b"x"]],
    ids=range(5),
)
def test_bytes_that_are_no_text_come_exact_and_end_nothing(
    world: World, box: str, chunks: list[bytes]
) -> None:
    world.first.events.append([*(out(chunk) for chunk in chunks), err(b"ok"), Exit(0)])
    found = events(box)
    assert written(found) == b"".join(chunks)
    shown = "".join(d["text"] for name, d in found if name == "stdout")
    assert "\ufffd" in shown
    assert (found[-1][0], written(found, "stderr")) == ("exit", b"ok")


def test_a_command_cannot_forge_an_event(world: World, box: str) -> None:
    world.first.events.append([out(FORGED.encode()), err(FORGED.encode()), Exit(1)])
    got = run(box)
    assert got.data.isascii()
    assert [name for name, _ in told(got.data)] == ["started", "stdout", "stderr", "exit"]
    assert b"\r" not in got.data


def test_much_output_comes_in_pieces_and_whole(world: World, box: str) -> None:
    data = ("é" * 100_000).encode()
    world.first.events.append([out(b"x" + data), Exit(0)])
    found = events(box)
    assert written(found) == b"x" + data
    assert len(found) > 5


def test_only_a_limit_that_was_asked_for_cuts(world: World, box: str) -> None:
    world.first.events.append([out("€".encode() * 3), err(b"abc"), Exit(0)])
    found = events(box, max_output_bytes=4)
    assert (written(found), written(found, "stderr")) == ("€".encode(), b"abc")
    assert found[-1][1]["truncated"] == {"stdout_bytes": 6, "stderr_bytes": 0}
    world.first.events.append([out(b"x" * 3_000_000), Exit(0)])
    assert len(written(events(box))) == 3_000_000


@pytest.mark.parametrize(
    ("end", "last"),
    [
        (Exit(None), ("exit", {"exit_code": None})),
        (Exit(None, signal="SIGKILL"), ("exit", {"exit_code": None, "signal": "SIGKILL"})),
        (Exit(None, timed_out=True), ("timeout", {})),
    ],
)
def test_an_end_is_told_as_it_was(world: World, box: str, end: Exit, last: Told) -> None:
    world.first.events.append([end])
    name, data = events(box)[-1]
    for known in ("duration_ms", "truncated"):
        del data[known]
    assert (name, data) == last


@pytest.mark.parametrize(
    ("failure", "status", "code"),
    [
        (Gone(), 409, "instance_gone"),
        (RateLimited(retry_after=7), 503, "provider_rate_limited"),
        (BrokenPool(), 503, "pool_broken"),
        (Unknown(), 502, "unknown_outcome"),
        (KeyError("CANARY"), 500, "internal"),
    ],
)
def test_what_fails_before_the_first_event_has_its_own_status(
    world: World, box: str, failure: Exception, status: int, code: str
) -> None:
    world.first.events.append([failure])
    got = run(box)
    assert (got.status, got.code) == (status, code)
    assert got.headers.get("retry-after") == ("7" if code == "provider_rate_limited" else None)
    assert "CANARY" not in got.text


def test_a_stream_that_never_begins_is_an_unknown_outcome(world: World, box: str) -> None:
    world.first.events.append([])
    got = run(box)
    assert (got.status, got.code) == (502, "unknown_outcome")


def test_a_sandbox_that_does_not_run_is_a_409(world: World) -> None:
    made = invoke("create_sandbox", event("create_sandbox", body={}, headers={"Prefer": "wait=0"}))
    got = run(made.json["id"])
    assert (got.status, got.code) == (409, "not_running_yet")
    assert got.headers["retry-after"] == "1"
    assert run("sbx-" + "a" * 26).status == 404
    assert run(made.json["id"], command=5).status == 400


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (Unknown(), "unknown_outcome"),
        (Gone(), "instance_gone"),
        (Outage("CANARY"), "provider_outage"),
        (KeyError("CANARY"), "internal"),
        (None, "unknown_outcome"),
    ],
)
def test_what_fails_later_is_the_last_event(
    world: World, box: str, failure: Exception | None, code: str, logged: io.StringIO
) -> None:
    world.first.events.append([out(b"x\xe6"), *([failure] if failure else [])])
    found = events(box)
    assert [name for name, _ in found] == ["started", "stdout", "stdout", "error"]
    problem = found[-1][1]
    assert (problem["code"], problem["request_id"]) == (code, REQUEST_ID)
    assert {"type", "title", "status", "class", "retryable", "outcome"} <= problem.keys()
    assert "KeyError" not in json.dumps(problem)
    if isinstance(failure, KeyError):
        assert "KeyError" in logged.getvalue()
        assert "CANARY" not in logged.getvalue() + json.dumps(problem)


def test_a_gone_instance_is_looked_at(world: World, box: str) -> None:
    world.first.events.append([out(b"x"), Gone()])
    before = len(world.first.calls)
    events(box)
    assert ("get", "first-1") in world.first.calls[before:]


def test_the_time_is_up_to_840_seconds_for_events_and_240_without(world: World, box: str) -> None:
    world.first.events.extend([[Exit(0)], [Exit(0)]])
    assert events(box, timeout_seconds=840)[-1][0] == "exit"
    assert world.first.commands[-1].timeout_seconds == 840
    assert run(box, timeout_seconds=841).status == 400
    long = on("run_command", box, body={"command": "x", "timeout_seconds": 241})
    assert (long.status, long.json["field_errors"][0]["path"]) == (400, "timeout_seconds")
    assert on("run_command", box, body={"command": "x", "timeout_seconds": 240}).status == 200


def test_where_integrations_do_not_stream_there_are_no_events(world: World, box: str) -> None:
    from functions.api.run_command import handler

    state = wiring.settings().state
    wiring.use(lambda _: world.router, Settings(state=state, streaming=False))
    got = run(box)
    assert (got.status, got.code, got.json["class"]) == (501, "streaming_off", "unsupported")
    world.first.events.append([Exit(0)])
    answer = handler(event("run_command", path={"id": box}, body={"command": "x"}), None)
    assert isinstance(answer, dict)
    assert answer["statusCode"] == 200
    assert world.first.commands[-1].timeout_seconds == 25
    long = on("run_command", box, body={"command": "x", "timeout_seconds": 26})
    assert (long.status, long.json["field_errors"][0]["path"]) == (400, "timeout_seconds")


def test_no_event_or_log_line_shows_a_secret(world: World, box: str, logged: io.StringIO) -> None:
    world.first.events.append([out(b"x"), Unknown()])
    found = events(box, env={"A": "CANARY-env"}, stdin="CANARY-in", command="echo CANARY-cmd")
    assert "CANARY" not in json.dumps(found) + logged.getvalue()
