"""Connect as envd speaks it: shapes of events, errors by code, time limits, bad messages."""

from __future__ import annotations

import base64
import time
from typing import Any

import pytest

from tests.local.host.hosting import E2B, frames_of


@pytest.fixture
def sandbox(alpha: E2B) -> dict[str, Any]:
    return alpha.made(envVars={"WHO": "sandbox"})


def _bash(script: str) -> dict[str, Any]:
    return {"process": {"cmd": "/bin/bash", "args": ["-c", script]}, "stdin": False}


def test_a_stream_is_start_data_end_and_trailers(alpha: E2B, sandbox: dict[str, Any]) -> None:
    start, data, end, trailers = alpha.start(sandbox, _bash("echo hi"))
    assert start["event"]["start"]["pid"] > 1
    assert data == {"event": {"data": {"stdout": base64.b64encode(b"hi\n").decode()}}}
    # Zero is left out, as protobuf does in JSON.
    assert end == {"event": {"end": {"exited": True, "status": "exit status 0"}}}
    assert trailers == {}


def test_ends_are_told_as_go_tells_them(alpha: E2B, sandbox: dict[str, Any]) -> None:
    failed = alpha.start(sandbox, _bash("exit 3"))[-2]["event"]["end"]
    assert failed == {"exitCode": 3, "exited": True, "status": "exit status 3",
                      "error": "exit status 3"}  # fmt: skip
    ended = alpha.start(sandbox, _bash("kill -TERM $$"))[-2]["event"]["end"]
    assert ended == {"exitCode": -1, "status": "signal: terminated", "error": "signal: terminated"}


def test_a_time_limit_ends_the_stream_with_its_code(alpha: E2B, sandbox: dict[str, Any]) -> None:
    began = time.monotonic()
    frames = alpha.start(sandbox, _bash("echo on; sleep 60"), timeout=0.4)
    assert time.monotonic() - began < 1.5
    assert frames[-1]["error"]["code"] == "deadline_exceeded"
    assert alpha.call(sandbox, "process.Process/List").json() == {}


def test_keepalives_come_while_nothing_happens(alpha: E2B, sandbox: dict[str, Any]) -> None:
    alpha.http.headers["keepalive-ping-interval"] = "1"
    frames = alpha.start(sandbox, _bash("sleep 1.5"))
    assert {"event": {"keepalive": {}}} in frames


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ({}, "invalid_argument"),
        ({"process": {"cmd": 3}}, "invalid_argument"),
        ({"process": {"cmd": "ls", "args": "x"}}, "invalid_argument"),
        ({"process": {"cmd": "ls", "args": ["\0"]}}, "invalid_argument"),
        ({"process": {"cmd": "ls", "envs": {"A=B": ""}}}, "invalid_argument"),
        ({"process": {"cmd": "ls", "cwd": "/nowhere"}}, "invalid_argument"),
        ({"process": {"cmd": "ls"}, "pty": {"size": {"cols": 80, "rows": 24}}}, "unimplemented"),
    ],
    ids=str,
)
def test_a_start_that_makes_no_sense_is_refused(
    alpha: E2B, sandbox: dict[str, Any], message: dict[str, Any], code: str
) -> None:
    (frame,) = alpha.start(sandbox, message)
    assert frame["error"]["code"] == code


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"", "application/connect+json"),
        (b"\0\0\0\0\x05{", "application/connect+json"),
        (b"\x01\0\0\0\x02{}", "application/connect+json"),
        (b"\0\xff\xff\xff\xff", "application/connect+json"),
        (b"\0\0\0\0\x02[]", "application/connect+json"),
        (b"{}", "application/json"),
    ],
)
def test_a_broken_envelope_is_an_error_and_no_process(
    alpha: E2B, sandbox: dict[str, Any], content: bytes, kind: str
) -> None:
    headers = alpha.into(sandbox) | {"content-type": kind}
    answer = alpha.http.post("/sandbox/process.Process/Start", content=content, headers=headers)
    assert "error" in frames_of(answer.content)[-1]
    assert alpha.call(sandbox, "process.Process/List").json() == {}


def test_unknown_processes_are_not_found(alpha: E2B, sandbox: dict[str, Any]) -> None:
    one = {"process": {"pid": 1}}
    for method, more in (
        ("SendSignal", {"signal": "SIGNAL_SIGKILL"}),
        ("SendInput", {"input": {"stdin": ""}}),
        ("CloseStdin", {}),
    ):
        answer = alpha.call(sandbox, f"process.Process/{method}", **one, **more)
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


@pytest.mark.parametrize("method", ["process.Process/Update", "filesystem.Filesystem/WatchDir"])
def test_missing_methods_are_unimplemented(
    alpha: E2B, sandbox: dict[str, Any], method: str
) -> None:
    answer = alpha.call(sandbox, method)
    assert (answer.status_code, answer.json()["code"]) == (501, "unimplemented")


def test_a_terminate_signal_can_be_caught(alpha: E2B, sandbox: dict[str, Any]) -> None:
    data = alpha.http.build_request(
        "POST",
        "/sandbox/process.Process/Start",
        content=_envelope('trap "echo caught; exit 5" TERM; echo ready; sleep 60 & wait'),
        headers=alpha.into(sandbox) | {"content-type": "application/connect+json"},
    )
    answer = alpha.http.send(data, stream=True)
    chunks = answer.iter_bytes()
    content = next(chunks)
    while b"data" not in content:
        content += next(chunks)
    pid = frames_of(content)[0]["event"]["start"]["pid"]
    chosen = {"process": {"pid": pid}, "signal": "SIGNAL_SIGTERM"}
    assert alpha.call(sandbox, "process.Process/SendSignal", **chosen).status_code == 200
    frames = frames_of(content + b"".join(chunks))
    assert frames[-2]["event"]["end"]["exitCode"] == 5


def test_a_client_that_leaves_does_not_end_the_command(alpha: E2B, sandbox: dict[str, Any]) -> None:
    headers = alpha.into(sandbox) | {"content-type": "application/connect+json"}
    script = "for i in $(seq 2000); do echo $i; done; touch finished"
    with alpha.http.stream(
        "POST", "/sandbox/process.Process/Start", content=_envelope(script), headers=headers
    ) as answer:
        next(answer.iter_raw())
    time.sleep(0.5)
    assert alpha.run(sandbox, "test -e finished")[0] == 0


def _envelope(script: str) -> bytes:
    import json

    data = json.dumps(_bash(script)).encode()
    return b"\0" + len(data).to_bytes(4, "big") + data
