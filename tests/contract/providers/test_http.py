"""The provider client against peers that misbehave, over real sockets on loopback."""

from __future__ import annotations

import contextvars
import logging
import socket
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

import httpx
import pytest

from adapters.providers.http import Call, Http, waiting
from sandbox_router.model import failure as fail
from sandbox_router.model.capability import HostRule
from sandbox_router.model.secret import Secret
from sandbox_router.ports import Content
from tests.contract.providers.peer import Script, answer, peer, says

RULES = (HostRule("api.good.dev", "account"), HostRule("*.good.dev", "sandbox"))
CANARY = "CANARY-7f3a"
OK = answer(200, b'{"a": 1}')
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened


def asked(
    stack: ExitStack, script: Script, *, timeout: float = 5.0, limit: int = 1000
) -> tuple[Http, Call]:
    there = stack.enter_context(peer(script))
    http = Http(RULES, {there.url: "account"})
    stack.callback(http.close)
    return http, Call("POST", f"{there.url}/x", "account", timeout, limit=limit)


@pytest.mark.case("A17")
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_never_followed(stack: ExitStack, status: int) -> None:
    elsewhere = stack.enter_context(peer(says(OK)))
    http, call = asked(stack, says(answer(status, b"", f"location: {elsewhere.url}/x")))
    with pytest.raises(fail.ProtocolBroken):
        http.call(call)
    assert elsewhere.requests == []


@pytest.mark.parametrize(
    "script",
    [
        says(*[b"x"] * 100, every=0.05),
        says(b"HTTP/1.1 200 OK\r\n", *[b"a: b\r\n"] * 100, every=0.05),
        says(b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n", *[b"x"] * 100, every=0.05),
        says(CHUNKED, *[b"1\r\nx\r\n"] * 100, every=0.05),
        says(b"HTTP/1.1 500 X\r\ncontent-length: 500\r\n\r\n", *[b"x"] * 100, every=0.05),
        lambda connection, over: over.wait(5) and None,
    ],
    ids=["status line", "headers", "body", "chunks", "error body", "silence"],
)
def test_the_total_time_holds_although_bytes_dribble(stack: ExitStack, script: Script) -> None:
    http, call = asked(stack, script, timeout=0.3)
    started = time.monotonic()
    with pytest.raises(fail.Unknown):
        http.call(call)
    assert time.monotonic() - started < 1.0


@pytest.mark.parametrize("pieces", [(), (b"123",), (b"12", b"345")], ids=["no", "short", "long"])
def test_a_body_that_is_not_what_was_announced_is_never_whole(
    stack: ExitStack, pieces: tuple[bytes, ...]
) -> None:
    received = threading.Event()

    def script(connection: socket.socket, over: threading.Event) -> None:
        while connection.recv(100):
            pass
        received.set()  # the end came before the announced one

    http, call = asked(stack, script)
    with pytest.raises(fail.Unknown):
        http.call(replace(call, body=Content(4, iter(pieces))))
    assert received.wait(5)


def test_the_total_time_holds_while_a_large_body_is_not_read(stack: ExitStack) -> None:
    server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    url = f"http://127.0.0.1:{server.getsockname()[1]}"
    http = Http(RULES, {url: "account"})
    started = time.monotonic()
    with pytest.raises(fail.Unknown):
        http.call(Call("POST", url, "account", 0.3, body=b"x" * 50_000_000))
    assert time.monotonic() - started < 1.0


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        (says(b""), fail.Unknown),
        (says(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc"), fail.Unknown),
        (says(CHUNKED + b"3\r\nabc\r\n"), fail.Unknown),
        (says(b"SSH-2.0-OpenSSH_9.2\r\n\r\n"), fail.Unknown),
        (says(b"\x00" * 200_000), fail.Unknown),
        (says(answer(200, b"x" * 1001)), fail.ProtocolBroken),
        (says(b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n"), fail.ProtocolBroken),
        (says(CHUNKED, *[b"200\r\n" + b"x" * 512 + b"\r\n"] * 9), fail.ProtocolBroken),
        (says(answer(200, b"x", "content-encoding: gzip")), fail.ProtocolBroken),
        (says(answer(503, b"x" * 100_000)), fail.Unknown),
        (says(answer(401, b"<html>")), fail.BrokenPool),
        (says(answer(204)), fail.ProtocolBroken),
    ],
)
def test_an_answer_that_cannot_be_used_is_a_failure(
    stack: ExitStack, script: Script, kind: type[fail.Failure]
) -> None:
    http, call = asked(stack, script)
    with pytest.raises(fail.Failure) as raised:
        http.call(call)
    assert type(raised.value) is kind


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def test_a_refused_connection_is_an_outage_and_surely_had_no_effect() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(fail.Outage):
        Http(RULES, {url: "account"}).call(Call("POST", url, "account", 2))


def test_a_name_that_does_not_resolve_is_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object, **__: object) -> None:
        raise socket.gaierror

    monkeypatch.setattr(socket, "getaddrinfo", missing)
    with pytest.raises(fail.Outage):
        Http(RULES).call(Call("GET", "https://api.good.dev/", "account", 2))


def test_a_failed_tls_handshake_is_an_outage(stack: ExitStack) -> None:
    there = stack.enter_context(peer(says(b"SSH-2.0-x\r\n"), reads=False))
    url = there.url.replace("http:", "https:")
    with pytest.raises(fail.Outage):
        Http(RULES, {url: "account"}).call(Call("GET", url, "account", 2))


def test_a_connection_that_is_not_made_in_time_is_an_outage() -> None:
    def stuck(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectTimeout("")

    http = Http(RULES, transport=httpx.MockTransport(stuck))
    with pytest.raises(fail.Outage):
        http.call(Call("GET", "https://api.good.dev/", "account", 2))


def test_cookies_of_one_answer_are_not_sent_with_the_next_call(stack: ExitStack) -> None:
    there = stack.enter_context(peer(says(answer(200, b"{}", f"set-cookie: a={CANARY}; path=/"))))
    http = Http(RULES, {there.url: "account"})
    for _ in range(2):
        http.call(Call("GET", f"{there.url}/x", "account", 2))
    assert len(there.requests) == 2
    assert b"cookie" not in there.requests[1].lower()


def test_time_spent_waiting_is_counted_in_the_context_that_waits(stack: ExitStack) -> None:
    http, call = asked(stack, says(b"", OK, every=0.1))
    with waiting() as waited:
        http.call(call)
        copied = contextvars.copy_context()
        thread = threading.Thread(target=copied.run, args=(http.call, call))
        thread.start()
        thread.join()
    counted = waited.seconds
    http.call(call)
    assert 0.2 <= counted < 2.0
    assert waited.seconds == counted


def test_no_call_outlasts_whoever_waits_for_its_answer(stack: ExitStack) -> None:
    http, call = asked(stack, says(b"", OK, every=2.0), timeout=5.0)
    started = time.monotonic()
    with waiting(0.3):
        with pytest.raises(fail.Unknown):
            http.call(call)
        with pytest.raises(fail.Outage):  # and what is asked after that is not sent
            http.call(call)
    assert 0.2 < time.monotonic() - started < 1.0


def test_what_is_asked_too_late_to_be_answered_is_not_sent(stack: ExitStack) -> None:
    there = stack.enter_context(peer(says(OK)))
    http = Http(RULES, {there.url: "account"})
    call = Call("GET", f"{there.url}/x", "account", 2)
    with waiting(0.0), pytest.raises(fail.Outage):
        http.call(call)
    assert there.requests == []
    assert http.call(call).status == 200


def test_a_closed_client_opens_again_for_a_later_call(stack: ExitStack) -> None:
    http, call = asked(stack, says(OK))
    assert http.call(call).object() == {"a": 1}
    http.close()
    http.close()
    assert http.call(call).object() == {"a": 1}


def outcome(http: Http, call: Call) -> str:
    """Everything a log could show of it."""
    try:
        return repr(http.call(call))
    except fail.Failure as failure:
        chain = (failure, failure.__cause__, failure.__context__, vars(failure))
        return "".join(traceback.format_exception(failure)) + repr(chain)


def test_no_secret_reaches_a_log_or_an_exception(
    stack: ExitStack, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    echo = answer(400, f'{{"message": "{CANARY}"}}'.encode(), f"x-echo: {CANARY}")
    scripts = [
        says(OK),
        says(echo),
        says(answer(302, b"", f"location: http://{CANARY}/")),
        says(b""),
    ]
    for script in scripts:
        there = stack.enter_context(peer(script))
        http = Http(RULES, {there.url: "account"})
        call = Call(
            *("POST", f"{there.url}/x", "account", 2),
            query=f"token={CANARY}",
            headers={"x-api-key": Secret(CANARY)},
            body=CANARY.encode(),
        )
        assert CANARY not in repr(call) + outcome(http, call) + caplog.text
        assert CANARY.encode() in there.requests[0]
