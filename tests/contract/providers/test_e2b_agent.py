"""Commands through the E2B adapter: what is sent, and how a stream may end badly."""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from adapters import providers
from adapters.providers.e2b.provider import E2B
from sandbox_router.model import failure as fail
from sandbox_router.model.secret import Secret
from sandbox_router.ports import Command, Exit, Output, Ref
from tests.contract.providers.e2b_fake import (
    REF,
    Fake,
    end,
    frame,
    ok,
    out,
    start,
    stream,
    trailer,
)
from tests.contract.providers.peer import peer, says

COMMAND = Command(shell="x", timeout_seconds=5)
DONE = stream(start(), out(b"\xff\x00"), out(b"e", "stderr"), end(exited=True), trailer())


def ran(fake: Fake, command: Command = COMMAND, ref: Ref = REF) -> list[Output | Exit]:
    return list(fake.account.run(ref, command))


def test_a_command_is_sent_once_with_its_surroundings_to_the_sandbox_alone() -> None:
    fake = Fake(DONE)
    command = Command(shell="echo", cwd="/w", env={"V": Secret("1")}, timeout_seconds=2.5)
    assert ran(fake, command) == [Output("stdout", b"\xff\x00"), Output("stderr", b"e"), Exit(0)]
    (request,) = fake.sent
    assert str(request.url) == "https://sandbox.e2b.app/process.Process/Start"
    assert request.headers["e2b-sandbox-id"] == REF.instance_id
    assert request.headers["e2b-sandbox-port"] == "49983"
    assert request.headers["x-access-token"] == "CANARY-token"
    assert request.headers["connect-timeout-ms"] == "2500"
    assert "x-api-key" not in request.headers
    assert request.content[0] == 0
    assert json.loads(request.content[5:]) == {
        "process": {
            "cmd": "/bin/bash",
            "args": ["-l", "-c", "echo"],
            "cwd": "/w",
            "envs": {"V": "1"},
        },
        "stdin": False,
    }


@pytest.mark.parametrize(
    ("ending", "seen"),
    [
        ({"exited": True}, Exit(0)),
        ({"exited": True, "exitCode": 3}, Exit(3)),
        ({"exitCode": -1, "status": "signal: killed"}, Exit(None, "SIGKILL")),
        ({"exitCode": -1, "status": "signal: terminated"}, Exit(None, "SIGTERM")),
        ({"status": "signal: segmentation fault (core dumped)"}, Exit(None, "SIGSEGV")),
        ({"status": "signal: 64"}, Exit(None)),
        ({}, Exit(None)),
    ],
)
def test_an_end_is_told_as_it_was(ending: dict[str, Any], seen: Exit) -> None:
    assert ran(Fake(stream(start(), end(**ending), trailer()))) == [seen]


@pytest.mark.parametrize(
    "frames",
    [
        (),
        (start(),),
        (start(), out(b"x")),
        (start(), out(b"x"), end(exited=True)[:-3]),
        (start(), trailer()),
        (start(), trailer(code="internal", message="x")),
        (start(), trailer(code="unavailable", message="x")),
        (trailer(),),
        (trailer(code="unavailable", message="x"),),
        (trailer(code="deadline_exceeded", message="x"),),
        (end(exited=True),),
        (start(), start()),
        (start(), frame({"event": {"data": {"stdout": "not base64!"}}})),
        (start(), frame({"event": {"data": {"stdout": 7}}})),
        (start(), frame({"event": {"data": []}})),
        (start(), frame({"event": 1})),
        (start(), frame({"event": {"end": {"exited": True, "exitCode": "0"}}})),
        (frame({"event": {"start": {"pid": "42"}}}),),
        (start(), frame({}, 1)),
        (start(), b"\x00\xff\xff\xff\xff"),
        (start(), b"\x00\x00\x00\x00\x01x"),
        (b"<html>It works!</html>",),
    ],
)
def test_a_stream_without_an_end_leaves_the_command_unknown(frames: tuple[bytes, ...]) -> None:
    fake = Fake(stream(*frames))
    with pytest.raises(fail.Unknown):
        ran(fake)
    assert len(fake.sent) == 1


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": "invalid_argument", "message": "no cwd"}, fail.Rejected),
        ({"code": "unauthenticated", "message": "no"}, fail.Permission),
        ({"code": "resource_exhausted", "message": "slow down"}, fail.RateLimited),
        ({"code": "unavailable", "message": "The sandbox was not found"}, fail.Gone),
    ],
)
def test_a_refusal_before_the_start_had_no_effect(
    error: dict[str, str], kind: type[fail.Failure]
) -> None:
    with pytest.raises(fail.Failure) as raised:
        ran(Fake(stream(trailer(**error))))
    assert type(raised.value) is kind


@pytest.mark.parametrize(
    "ending",
    [
        trailer(code="deadline_exceeded", message="context deadline exceeded"),
        end(status="signal: killed"),
    ],
)
def test_a_command_that_envd_ends_at_its_timeout_timed_out(ending: bytes) -> None:
    def reply(request: httpx.Request) -> httpx.Response:
        time.sleep(0.06)  # envd ends it at the timeout, never before
        return stream(start(), out(b"x"), ending)

    fake = Fake(reply, ok({}))
    seen = ran(fake, Command(shell="x", timeout_seconds=0.05))
    assert seen == [Output("stdout", b"x"), Exit(None, timed_out=True)]


@pytest.mark.case("A19")
def test_a_stream_that_does_not_end_at_the_timeout_is_left_and_the_command_killed() -> None:
    with ExitStack() as stack:
        chunk = start() + out(b"x")
        head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
        body = b"%x\r\n%s\r\n" % (len(chunk), chunk)
        there = stack.enter_context(peer(says(head + body, *[b""] * 50, every=0.1)))
        account = E2B(providers.profile("e2b"), Secret("k"), sandbox_url=there.url)
        started = time.monotonic()
        seen = list(account.run(REF, Command(shell="x", timeout_seconds=0.2)))
        assert time.monotonic() - started < 1.2
        assert seen == [Output("stdout", b"x"), Exit(None, timed_out=True)]
        assert b"SIGNAL_SIGKILL" in there.requests[1]


def test_the_exit_does_not_wait_for_a_trailer_that_does_not_come() -> None:
    chunk = start() + end(exited=True)
    head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
    with peer(says(head + b"%x\r\n%s\r\n" % (len(chunk), chunk), *[b""] * 50, every=0.1)) as there:
        account = E2B(providers.profile("e2b"), Secret("k"), sandbox_url=there.url)
        started = time.monotonic()
        assert list(account.run(REF, COMMAND)) == [Exit(0)]
        assert time.monotonic() - started < 1.2
        assert len(there.requests) == 1


def test_signs_of_life_arrive_as_empty_output() -> None:
    fake = Fake(stream(start(), frame({"event": {"keepalive": {}}}), end(exited=True), trailer()))
    assert ran(fake) == [Output("stdout", b""), Exit(0)]
    assert fake.sent[0].headers["keepalive-ping-interval"] == "5"


def test_a_refused_connection_is_an_outage_for_a_command_too() -> None:
    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("")

    with pytest.raises(fail.Outage):
        ran(Fake(refuse))


def test_input_that_cannot_be_delivered_ends_the_command_as_unknown() -> None:
    def reply(request: httpx.Request) -> httpx.Response:
        name = request.url.path.rpartition("/")[2]
        if name == "Start":
            return httpx.Response(200, stream=_Slow(start(), end(status="signal: killed")))
        return httpx.Response(500 if name == "SendInput" else 200, json={})

    fake = Fake(reply)
    with pytest.raises(fail.Unknown):
        ran(fake, Command(shell="x", stdin=b"1", timeout_seconds=5))
    assert [r.url.path.rpartition("/")[2] for r in fake.sent] == [
        "Start",
        "SendInput",
        "SendSignal",
    ]


class _Slow(httpx.SyncByteStream):
    def __init__(self, *frames: bytes) -> None:
        self._frames = frames

    def __iter__(self) -> Any:
        for part in self._frames:
            yield part
            time.sleep(0.2)


def test_an_agent_too_old_to_end_input_is_not_given_any() -> None:
    fake = Fake(DONE)
    old = Ref(REF.instance_id, {**REF.access, "version": Secret("0.5.1")})
    with pytest.raises(fail.PoolUnsupported):
        ran(fake, Command(shell="x", stdin=b"1"), old)
    assert fake.sent == []
