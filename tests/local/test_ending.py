"""Requests that are under way when the server ends get an answer of the contract."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from functions.edge.stream import Streamed
from infra.local.authorizer import Authorizer
from infra.local.gateway import Gateway
from infra.local.routes import Context, Route, Routes
from infra.local.server import Server, bind, server

DRAIN = 0.3
LONG = 3.0


class Slow:
    """Functions that are at work when the server ends."""

    def __init__(self) -> None:
        self.at_work = threading.Event()

    def answer(self, event: dict[str, Any], context: Context) -> dict[str, Any]:
        self.at_work.set()
        time.sleep(LONG)
        return {"statusCode": 201}

    def events(self, event: dict[str, Any], context: Context) -> Streamed:
        return Streamed(200, {"Content-Type": "text/event-stream"}, self._frames(b"data: 1\n\n"))

    def file(self, event: dict[str, Any], context: Context) -> Streamed:
        return Streamed(200, {"Content-Type": "application/octet-stream"}, self._frames(b"half"))

    def _frames(self, first: bytes) -> Iterator[bytes]:
        yield first
        self.at_work.set()
        time.sleep(LONG)
        yield b"never read"


@contextmanager
def serving(slow: Slow) -> Iterator[tuple[Server, str]]:
    handlers = {"answer": slow.answer, "events": slow.events, "file": slow.file}
    routes = [
        Route("POST", f"/v1/{name}", name, handler, 29, public=True, stream=name != "answer")
        for name, handler in handlers.items()
    ]
    running = server(Gateway(Routes(routes), Authorizer(slow.answer)))
    running.config.timeout_graceful_shutdown = DRAIN  # type: ignore[assignment]
    bound = bind(0)
    thread = threading.Thread(target=running.run, kwargs={"sockets": [bound]}, daemon=True)
    thread.start()
    while not running.started:
        time.sleep(0.005)
    yield running, f"http://127.0.0.1:{bound.getsockname()[1]}"
    running.should_exit = True
    thread.join(10)
    assert not thread.is_alive()
    bound.close()


def cut_off(path: str) -> httpx.Response:
    """The answer to a request that outlasts the server."""
    slow = Slow()
    with serving(slow) as (running, url), ThreadPoolExecutor(1) as threads:
        asked: Future[httpx.Response] = threads.submit(httpx.post, f"{url}{path}", timeout=10)
        assert slow.at_work.wait(5)
        running.should_exit = True
        return asked.result(10)


def test_a_call_that_is_cut_off_has_an_unknown_outcome() -> None:
    answer = cut_off("/v1/answer")
    said = answer.json()
    assert answer.status_code == said["status"] == 503
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["x-request-id"] == said["request_id"]
    assert answer.headers["retry-after"] == "5"
    assert (said["code"], said["class"]) == ("unknown_outcome", "unknown_outcome")
    assert (said["outcome"], said["retryable"]) == ("unknown", False)


def test_a_stream_of_events_that_is_cut_off_ends_with_an_error() -> None:
    answer = cut_off("/v1/events")
    assert answer.status_code == 200
    first, last = answer.text.strip().split("\n\n")
    assert first == "data: 1"
    name, data = last.split("\n")
    assert name == "event: error"
    said = json.loads(data.removeprefix("data: "))
    assert (said["class"], said["outcome"]) == ("unknown_outcome", "unknown")
    assert said["request_id"] == answer.headers["x-request-id"]


def test_any_other_answer_that_is_cut_off_is_not_a_whole_one() -> None:
    with pytest.raises(httpx.RemoteProtocolError):
        cut_off("/v1/file")
