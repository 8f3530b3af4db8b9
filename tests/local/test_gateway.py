"""The gateway in front of functions made for the test, over real sockets."""

from __future__ import annotations

import base64
import http.client
import io
import json
import logging
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from functions.edge.log import log
from functions.edge.stream import Streamed
from infra.local.authorizer import Authorizer
from infra.local.gateway import BODY_BYTES, Gateway
from infra.local.routes import Context, Handler, Route, Routes
from infra.local.server import bind, server

KEY = {"Authorization": "Bearer right"}
PROBLEM = "application/problem+json"


class Functions:
    """What the test's routes do, and what reached them."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.asked: list[dict[str, Any]] = []
        self.left: list[int] = []
        self.closed = threading.Event()

    def authorize(self, event: dict[str, Any], context: Context) -> dict[str, Any]:
        self.asked.append(event)
        if event["authorizationToken"] == "Bearer unlucky":
            raise Exception("CANARY: the table does not answer")
        if event["authorizationToken"] != "Bearer right":
            raise Exception("Unauthorized")
        allow = {"Effect": "Allow", "Action": "execute-api:Invoke", "Resource": "arn:aws:*"}
        policy = {"Version": "2012-10-17", "Statement": [allow]}
        return {"principalId": "key-1", "policyDocument": policy, "context": {"tenant": "t"}}

    def echo(self, event: dict[str, Any], context: Context) -> dict[str, Any]:
        self.events.append(event)
        self.left.append(context.get_remaining_time_in_millis())
        return {"statusCode": 200, "headers": {"X-Request-Id": "mine"}, "body": "ok"}

    def binary(self, event: dict[str, Any], context: Context) -> dict[str, Any]:
        many = {"multiValueHeaders": {"Set-Cookie": ["a=1", "b=2"]}}
        body = base64.b64encode(bytes(range(256))).decode()
        return {"statusCode": 200, **many, "body": body, "isBase64Encoded": True}

    def stream(self, event: dict[str, Any], context: Context) -> Streamed:
        def frames() -> Iterator[bytes]:
            try:
                for n in range(50):
                    yield f"data: {n}\n\n".encode()
                    time.sleep(0.01)
            finally:
                self.closed.set()

        return Streamed(200, {"Content-Type": "text/event-stream"}, frames())

    def crash(self, event: dict[str, Any], context: Context) -> dict[str, Any]:
        raise KeyError("CANARY")

    def nonsense(self, event: dict[str, Any], context: Context) -> dict[str, Any]:
        return {"hello": "world"}

    def slow(self, event: dict[str, Any], context: Context) -> dict[str, Any]:
        time.sleep(1)
        return {"statusCode": 200}


@pytest.fixture
def functions() -> Functions:
    return Functions()


@pytest.fixture
def url(functions: Functions) -> Iterator[str]:
    def route(method: str, template: str, handler: Handler, timeout: float = 29) -> Route:
        return Route(method, template, "f", handler, timeout, public=template == "/v1/health")

    gateway = Gateway(
        Routes(
            [
                route("GET", "/v1/health", functions.echo),
                route("POST", "/v1/things", functions.echo),
                route("GET", "/v1/things/{id}", functions.echo),
                route("GET", "/v1/things/binary", functions.binary),
                route("GET", "/v1/things/{id}/stream", functions.stream),
                route("GET", "/v1/crash", functions.crash),
                route("GET", "/v1/nonsense", functions.nonsense),
                route("GET", "/v1/slow", functions.slow, timeout=0.2),
            ]
        ),
        Authorizer(functions.authorize),
    )
    bound = bind(0)
    running = server(gateway)
    thread = threading.Thread(target=running.run, kwargs={"sockets": [bound]})
    thread.start()
    while not running.started:
        time.sleep(0.005)
    yield f"http://127.0.0.1:{bound.getsockname()[1]}"
    running.should_exit = True
    thread.join(10)
    assert not thread.is_alive()
    bound.close()


def raw(url: str, data: bytes) -> tuple[int, dict[str, str], bytes]:
    """Send bytes as they are and read one answer."""
    with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), 5) as conn:
        conn.sendall(data)
        answer = http.client.HTTPResponse(conn)
        answer.begin()
        return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()


def test_the_event_is_what_api_gateway_sends(url: str, functions: Functions) -> None:
    head = b"POST /v1/things?a=1&a=2&b= HTTP/1.1\r\nHost: h\r\nX-CasE: one\r\nX-CasE: two\r\n"
    raw(url, head + b"Authorization: Bearer right\r\nContent-Length: 2\r\n\r\n{}")
    (event,) = functions.events
    assert event["headers"]["X-CasE"] == "two"
    assert event["multiValueHeaders"]["X-CasE"] == ["one", "two"]
    assert event["queryStringParameters"] == {"a": "2", "b": ""}
    assert event["multiValueQueryStringParameters"] == {"a": ["1", "2"], "b": [""]}
    assert (event["httpMethod"], event["path"], event["resource"]) == (
        ("POST", "/v1/things", "/v1/things")
    )
    assert (event["body"], event["isBase64Encoded"]) == ("{}", False)
    context = event["requestContext"]
    assert context["authorizer"] == {"tenant": "t", "principalId": "key-1"}
    assert context["identity"]["sourceIp"] == "127.0.0.1"
    assert context["resourcePath"] == "/v1/things"
    assert len(context["requestId"]) == 36
    assert 28_000 < functions.left[0] <= 29_000


def test_path_parameters_are_decoded_and_literals_win(url: str, functions: Functions) -> None:
    assert httpx.get(f"{url}/v1/things/a%20b", headers=KEY).status_code == 200
    assert functions.events[0]["pathParameters"] == {"id": "a b"}
    answer = httpx.get(f"{url}/v1/things/binary", headers=KEY)
    assert answer.content == bytes(range(256))
    assert answer.headers.get_list("set-cookie") == ["a=1", "b=2"]


def test_bytes_that_are_no_text_come_in_base64(url: str, functions: Functions) -> None:
    data = bytes(range(256))
    for kind in ("application/octet-stream", "application/json"):
        httpx.post(f"{url}/v1/things", content=data, headers={**KEY, "Content-Type": kind})
        event = functions.events.pop()
        assert event["isBase64Encoded"]
        assert base64.b64decode(event["body"]) == data


def test_a_stream_arrives_frame_by_frame_and_ends(url: str, functions: Functions) -> None:
    with httpx.stream("GET", f"{url}/v1/things/1/stream", headers=KEY) as answer:
        assert answer.headers["transfer-encoding"] == "chunked"
        chunks = list(answer.iter_raw())
    assert len(chunks) > 5
    assert b"".join(chunks).endswith(b"data: 49\n\n")


def test_a_stream_nobody_reads_any_more_is_closed(url: str, functions: Functions) -> None:
    with httpx.stream("GET", f"{url}/v1/things/1/stream", headers=KEY) as answer:
        next(answer.iter_raw())
    assert functions.closed.wait(0.4)


@pytest.mark.parametrize("path", ["/", "/v1/none", "/v1/things/1/", "//v1/things/1", "/v1/things/"])
def test_an_unknown_path_is_one_404(url: str, path: str) -> None:
    answer = httpx.get(url + path)
    assert (answer.status_code, answer.headers["content-type"]) == (404, PROBLEM)
    assert answer.json()["request_id"] == answer.headers["x-request-id"]
    assert answer.json() | {"request_id": ""} == httpx.get(f"{url}/v1/other").json() | {
        "request_id": ""
    }


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "TRACE", "DELETE", "BREW", "CONNECT"])
def test_an_unknown_method_is_the_same_404(url: str, method: str) -> None:
    head = f"{method} /v1/health HTTP/1.1\r\nHost: h\r\n\r\n"
    with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), 5) as conn:
        conn.sendall(head.encode())
        answer = http.client.HTTPResponse(conn, method=method)
        answer.begin()
        assert answer.status == 404
        assert bool(answer.read()) is (method != "HEAD")


def test_every_wrong_key_is_the_same_401(url: str, functions: Functions) -> None:
    bodies = []
    for headers in (
        [],
        [("Authorization", "Bearer wrong")],
        [("Authorization", "")],
        [*KEY.items(), *KEY.items()],
        [("Authorization", "Basic cmlnaHQ=")],
    ):
        answer = httpx.get(f"{url}/v1/things/1", headers=headers)
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
        bodies.append(answer.json() | {"request_id": ""})
    assert all(body == bodies[0] for body in bodies)
    assert functions.events == []


def test_a_key_that_nobody_can_look_up_now_is_for_later(url: str, functions: Functions) -> None:
    headers = {"Authorization": "Bearer unlucky"}
    answer = httpx.get(f"{url}/v1/things/1", headers=headers)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    told = answer.json()
    assert (told["code"], told["retryable"], told["outcome"]) == ("store_busy", True, "none")
    assert "CANARY" not in answer.text
    assert functions.events == []


def test_a_key_is_looked_up_once_a_minute_and_public_paths_need_none(
    url: str, functions: Functions
) -> None:
    for _ in range(3):
        assert httpx.get(f"{url}/v1/things/1", headers=KEY).status_code == 200
        assert httpx.get(f"{url}/v1/health").status_code == 200
    assert len(functions.asked) == 1
    assert "body" not in functions.asked[0]


@pytest.mark.parametrize("path", ["crash", "nonsense"])
def test_a_crashing_function_is_a_502_that_says_nothing(url: str, path: str) -> None:
    answer = httpx.get(f"{url}/v1/{path}", headers=KEY)
    assert (answer.status_code, answer.headers["content-type"]) == (502, PROBLEM)
    assert answer.json()["outcome"] == "unknown"
    assert "CANARY" not in answer.text


def test_the_log_of_a_crash_has_its_place_and_nothing_of_its_text(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log()
    (handler,) = logging.getLogger("sandbox-router").handlers
    written = io.StringIO()
    monkeypatch.setattr(handler, "stream", written)
    httpx.get(f"{url}/v1/crash", headers=KEY)
    assert "KeyError" in written.getvalue()
    assert "test_gateway.py" in written.getvalue()
    assert "CANARY" not in written.getvalue()


def test_a_function_over_its_time_is_a_504(url: str) -> None:
    answer = httpx.get(f"{url}/v1/slow", headers=KEY)
    assert (answer.status_code, answer.json()["outcome"]) == (504, "unknown")


def test_a_body_over_the_gateway_limit_is_a_413(url: str, functions: Functions) -> None:
    answer = httpx.post(f"{url}/v1/things", content=b"x" * (BODY_BYTES + 1), headers=KEY)
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    assert httpx.post(f"{url}/v1/things", content=b"x" * BODY_BYTES, headers=KEY).is_success
    assert len(functions.events) == 1


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"hello\r\n\r\n", 400),
        (b"GET /v1/health HTTP/1.1\r\nHost: h\r\nbad header\r\n\r\n", 400),
        (b"GET /v1/health HTTP/1.1\r\nHost: h\r\nX: a\0b\r\n\r\n", 400),
        (b"GET /v1/health HTTP/1.1\r\n\r\n", 400),
        (b"GET /v1/\xff HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        (b"GET /v1/health HTTP/1.1\r\nHost: h\r\nX: " + b"a" * 11_000 + b"\r\n\r\n", 431),
        (b"GET /v1/health HTTP/1.1\r\nHost: h\r\nX: " + b"a" * 300_000 + b"\r\n\r\n", 431),
        (b"POST /v1/things HTTP/1.1\r\nHost: h\r\nContent-Length: x\r\n\r\n", 400),
        (b"POST /v1/things HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\n\r\n", 400),
        (b"POST /v1/things HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
    ],
)
def test_what_is_no_http_is_refused_with_a_problem(
    url: str, functions: Functions, data: bytes, status: int
) -> None:
    got, headers, body = raw(url, data)
    assert (got, headers["content-type"]) == (status, PROBLEM)
    assert json.loads(body)["status"] == status
    assert functions.events == []
    assert httpx.get(f"{url}/v1/health").status_code == 200


def test_a_query_that_is_no_text_is_a_400(url: str, functions: Functions) -> None:
    answer = httpx.get(f"{url}/v1/things/1?a=%ff", headers=KEY)
    assert (answer.status_code, answer.headers["content-type"]) == (400, PROBLEM)
    assert functions.events == []


def test_an_answer_does_not_wait_for_the_clients_acknowledgement(url: str) -> None:
    with httpx.Client() as client:
        client.get(f"{url}/v1/health")
        began = time.perf_counter()
        for _ in range(10):
            client.get(f"{url}/v1/health")
        assert time.perf_counter() - began < 0.3  # ten times 40 ms with Nagle's algorithm
