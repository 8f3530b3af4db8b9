"""Events of a real handler on their way out: the local gateway over HTTP, Lambda's shim."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import httpx
import pytest

from functions.api.run_command import handler
from functions.edge import sse, wiring
from functions.edge.settings import Settings
from functions.workers import authorize
from infra.local.authorizer import Authorizer
from infra.local.gateway import Gateway
from infra.local.routes import Routes, of_catalog
from infra.local.server import bind, server
from sandbox_router.model.secret import Secret
from sandbox_router.ports import Command, Exit, Output, Ref
from tests.unit.functions.world import World, event
from tests.unit.stream.runtime_api import FakeRuntimeApi
from tests.unit.stream.test_stream_runtime import runtime

KEY = "sbr_" + "k" * 40
ASK = {"Authorization": f"Bearer {KEY}", "Accept": "text/event-stream"}
TEXT = "café 日本語 🚀"
BODY = {"command": "x"}


class Talker:
    """A command that says a chunk each time it is let; every second let is a sign of life only."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self.gate, self.ended = threading.Semaphore(0), threading.Event()
        self.chunks: list[bytes] = []
        monkeypatch.setattr(world.first, "run", self.run)
        monkeypatch.setattr(sse, "PACE", replace(sse.PACE, first=0.0, ending=0.1))

    def run(self, ref: Ref, command: Command) -> Iterator[Output | Exit]:
        try:
            for chunk in self.chunks:
                assert self.gate.acquire(timeout=10)
                yield Output("stdout", chunk)
            yield Exit(0)
        finally:
            self.ended.set()


@pytest.fixture
def world(tmp_path: object) -> Iterator[World]:
    made = World()
    wiring.use(lambda _: made.router, Settings(state=tmp_path))  # type: ignore[arg-type]
    made.router.add_key("acme", Secret(KEY), ["sandboxes:read", "sandboxes:write"])
    yield made
    wiring.use(wiring.build)


@pytest.fixture
def talker(world: World, monkeypatch: pytest.MonkeyPatch) -> Talker:
    return Talker(world, monkeypatch)


@pytest.fixture
def url(world: World) -> Iterator[str]:
    bound = bind(0)
    running = server(Gateway(Routes(of_catalog()), Authorizer(authorize.handler, 60)))
    thread = threading.Thread(target=running.run, kwargs={"sockets": [bound]})
    thread.start()
    while not running.started:
        time.sleep(0.005)
    yield f"http://127.0.0.1:{bound.getsockname()[1]}"
    running.should_exit = True
    thread.join(10)
    assert not thread.is_alive()
    bound.close()


@pytest.fixture
def api() -> Iterator[FakeRuntimeApi]:
    fake = FakeRuntimeApi()
    yield fake
    fake.close()


def data_of(frame: str) -> str:
    return "".join(
        json.loads(line.removeprefix("data: ")).get("text", "")
        for line in frame.split("\n")
        if line.startswith("data: ")
    )


@pytest.mark.case("A20")
def test_chunks_arrive_over_http_as_they_are_written(
    world: World, url: str, talker: Talker
) -> None:
    box = world.created()
    talker.chunks = [TEXT.encode()[n : n + 1] for n in range(len(TEXT.encode()))]
    with httpx.stream("POST", f"{url}/v1/sandboxes/{box}/exec", json=BODY, headers=ASK) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "text/event-stream"
        assert answer.headers["transfer-encoding"] == "chunked"
        assert answer.headers["x-request-id"]
        frames = answer.iter_text()
        assert "event: started" in next(frames)  # the command has said nothing yet
        talker.gate.release()
        assert data_of(next(frames)) == "c"
        talker.gate.release(len(talker.chunks))
        rest = "".join(frames)
    assert "c" + data_of(rest) == TEXT
    assert rest.rstrip().split("\n")[-2] == "event: exit"


def test_a_refusal_over_http_keeps_its_status(world: World, url: str) -> None:
    nowhere = f"{url}/v1/sandboxes/sbx-{'a' * 26}/exec"
    answer = httpx.post(nowhere, json=BODY, headers=ASK)
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert answer.headers["content-type"] == "application/problem+json"


def test_a_client_that_leaves_over_http_ends_a_silent_command(
    world: World, url: str, talker: Talker
) -> None:
    box = world.created()
    talker.chunks = [b""] * 10_000  # it would not end by itself
    with httpx.stream("POST", f"{url}/v1/sandboxes/{box}/exec", json=BODY, headers=ASK) as answer:
        next(answer.iter_raw())
    began = time.monotonic()
    while not talker.ended.is_set() and time.monotonic() - began < 5:
        talker.gate.release()  # signs of life
        time.sleep(0.02)
    assert talker.ended.is_set()
    assert httpx.get(f"{url}/v1/health").status_code == 200


def test_the_shim_sends_each_event_in_its_own_chunk(
    world: World, api: FakeRuntimeApi, talker: Talker
) -> None:
    talker.chunks = [b"one", b"two"]
    api.events.put(event("run_command", path={"id": world.created()}, body=BODY, headers=ASK))
    threading.Timer(0.1, talker.gate.release).start()
    threading.Timer(0.4, talker.gate.release).start()
    runtime.serve(runtime.RuntimeApi(api.address), handler)
    post = api.posts.get(timeout=5)
    head = json.loads(post.chunks[0].rstrip(b"\0"))
    assert head["statusCode"] == 200
    assert head["multiValueHeaders"]["Content-Type"] == ["text/event-stream"]
    names = [chunk.split(b"\n")[1] for chunk in post.chunks[1:]]
    assert names == [b"event: started", b"event: stdout", b"event: stdout", b"event: exit"]
    assert post.at[3] - post.at[2] >= 0.15
    assert post.trailers == {}


def test_the_shim_passes_a_refusal_as_a_problem(world: World, api: FakeRuntimeApi) -> None:
    api.events.put(event("run_command", path={"id": "sbx-" + "a" * 26}, body=BODY, headers=ASK))
    runtime.serve(runtime.RuntimeApi(api.address), handler)
    head, _, body = api.posts.get(timeout=5).body.partition(b"\0" * 8)
    assert json.loads(head)["statusCode"] == 404
    assert json.loads(body)["code"] == "not_found"


def test_the_shim_ends_the_command_when_nobody_takes_the_answer(
    world: World, talker: Talker
) -> None:
    asked = event("run_command", path={"id": world.created()}, body=BODY, headers=ASK)
    talker.chunks = [b"x" * 60_000] * 400
    talker.gate.release(400)
    with HangingUp(json.dumps(asked).encode()) as address:
        runtime.serve(runtime.RuntimeApi(address), handler)  # does not raise
    assert talker.ended.wait(5)


class HangingUp:
    """A Runtime API that hands out one event, and resets the connection of the answer."""

    def __init__(self, body: bytes) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n"
        head += "Lambda-Runtime-Aws-Request-Id: r\r\nLambda-Runtime-Deadline-Ms: 1\r\n\r\n"
        self._answers: list[Callable[[socket.socket], object]] = [
            lambda conn: conn.sendall(head.encode() + body),
            lambda conn: conn.recv(4096),
        ]
        self._thread = threading.Thread(target=self._serve)

    def _serve(self) -> None:
        for answer in self._answers:
            conn, _ = self._socket.accept()
            with conn:
                conn.recv(4096)
                answer(conn)

    def __enter__(self) -> str:
        self._thread.start()
        return f"127.0.0.1:{self._socket.getsockname()[1]}"

    def __exit__(self, *_: object) -> None:
        self._thread.join(5)
        self._socket.close()
