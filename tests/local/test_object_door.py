"""Signed requests of one machine over real sockets: for their method, key, size and time only."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator, MutableMapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from adapters.folder import FolderObjects
from infra.local.objects import ObjectDoor
from infra.local.server import bind, server
from sandbox_router.model.failure import NotFound
from sandbox_router.model.secret import Secret
from tests.fakes.clock import FakeClock
from tests.local.acceptance.deployment import eventually

KEY = "up/ac%2Fme/sbx-a/one"
LARGE = bytes(range(256)) * 4096 * 9  # 9 MiB: in many pieces


class Served:
    """The door, its objects and what came through it."""

    def __init__(self, folder: Path, port: int) -> None:
        self.clock = FakeClock()
        self.url = f"http://127.0.0.1:{port}"
        secret = Secret("CANARY" * 9)
        self.objects = FolderObjects(folder / "objects", self.url, lambda: secret, self.clock)
        self.folder = folder / "objects"
        self.through: list[str] = []

    async def app(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        self.through.append(scope["path"])
        await send({"type": "http.response.start", "status": 418, "headers": []})
        await send({"type": "http.response.body", "body": b""})


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    bound = bind(0)
    made = Served(tmp_path, bound.getsockname()[1])
    running = server(ObjectDoor(made.app, made.objects))
    bound.listen()
    thread = threading.Thread(target=running.run, kwargs={"sockets": [bound]})
    thread.start()
    yield made
    running.should_exit = True
    thread.join(10)
    assert not thread.is_alive()


def refused(answer: httpx.Response) -> tuple[int, str]:
    assert answer.headers["content-type"] == "application/problem+json"
    assert "CANARY" not in answer.text
    return answer.status_code, answer.json()["code"]


@pytest.mark.parametrize("data", [b"", b"x", LARGE], ids=len)
def test_what_is_put_by_a_url_is_read_by_another(served: Served, data: bytes) -> None:
    put = served.objects.upload(KEY, seconds=60, size=len(data))
    assert httpx.put(put.url, content=data).status_code == 200
    got = httpx.get(served.objects.download(KEY, seconds=60).url)
    assert (got.status_code, got.content == data) == (200, True)
    assert got.headers["content-length"] == str(len(data))
    assert got.headers["content-disposition"] == "attachment"
    assert served.through == []


def test_without_a_size_any_will_do_in_chunks_too(served: Served) -> None:
    url = served.objects.upload(KEY, seconds=60, size=None).url
    assert httpx.put(url, content=iter([b"a", b"b" * 100_000])).status_code == 200
    with served.objects.read(KEY) as content:
        assert content.size == 100_001


@pytest.mark.parametrize("size", [0, 4, 6])
def test_a_url_of_a_size_takes_no_other(served: Served, size: int) -> None:
    url = served.objects.upload(KEY, seconds=60, size=5).url
    assert refused(httpx.put(url, content=b"x" * size)) == (403, "forbidden")
    assert refused(httpx.put(url, content=iter([b"12345"]))) == (403, "forbidden")
    with pytest.raises(NotFound), served.objects.read(KEY):
        pass


def test_a_url_is_for_its_method_its_key_and_its_time(served: Served) -> None:
    served.objects.put(KEY, [b"secret"])
    put = served.objects.upload(KEY, seconds=60, size=None).url
    get = served.objects.download(KEY, seconds=60).url
    other = get.replace("sbx-a", "sbx-b")
    for method, url in (("GET", put), ("PUT", get), ("DELETE", get), ("HEAD", get), ("GET", other)):
        assert httpx.request(method, url).status_code == 403, (method, url)
    assert httpx.get(get).content == b"secret"
    served.clock.sleep(61)
    assert refused(httpx.get(get)) == (403, "forbidden")
    assert refused(httpx.put(put, content=b"x")) == (403, "forbidden")
    with served.objects.read(KEY) as content:
        assert content.size == 6


def test_what_is_not_there_is_404(served: Served) -> None:
    assert refused(httpx.get(served.objects.download(KEY, seconds=60).url)) == (404, "not_found")


@pytest.mark.parametrize("query", ["", "?", "?signature=x", "?expires=1&signature=%ff", "?size=x"])
@pytest.mark.parametrize("path", ["", "x", "../router.db", "%2e%2e%2frouter.db", "a" * 5000])
def test_nonsense_is_forbidden(served: Served, path: str, query: str) -> None:
    url = f"{served.url}/_objects/{path}{query}"
    target = url.replace(served.url, "")
    port = int(served.url.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), 5) as connection:
        connection.sendall(f"GET {target} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
        assert connection.recv(100).startswith(b"HTTP/1.1 403 ")


def test_everything_else_goes_through(served: Served) -> None:
    for path in ("/", "/v1/health", "/_objects", "/_object/x", "/v1/_objects/x"):
        assert httpx.get(served.url + path).status_code == 418
    assert len(served.through) == 5


def test_a_client_who_leaves_in_the_middle_leaves_nothing(served: Served) -> None:
    url = httpx.URL(served.objects.upload(KEY, seconds=60, size=None).url)
    with socket.create_connection(("127.0.0.1", url.port or 0), 5) as connection:
        head = f"PUT {url.raw_path.decode()} HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n"
        connection.sendall(head.encode() + b"x" * 50_000)
        eventually(lambda: list(served.folder.glob(".*")), 5)
    eventually(lambda: list(served.folder.iterdir()) == [], 5)


def test_many_that_come_slowly_hold_up_nobody(served: Served) -> None:
    url = httpx.URL(served.objects.upload(KEY, seconds=60, size=None).url)
    head = f"PUT {url.raw_path.decode()} HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nx"
    served.objects.put("other", [b"there"])
    with ExitStack() as slow:
        for _ in range(40):  # asyncio has 32 threads at most
            client = socket.create_connection(("127.0.0.1", url.port or 0), 5)
            slow.enter_context(client).sendall(head.encode())
        eventually(lambda: len(list(served.folder.glob(".*"))) == 40, 5)
        answer = httpx.get(served.objects.download("other", seconds=60).url, timeout=5)
    assert (answer.status_code, answer.content) == (200, b"there")


def test_a_put_under_way_does_not_hold_up_the_end(tmp_path: Path) -> None:
    bound = bind(0)
    made = Served(tmp_path, bound.getsockname()[1])
    running = server(ObjectDoor(made.app, made.objects))
    running.config.timeout_graceful_shutdown = 1
    bound.listen()
    thread = threading.Thread(target=running.run, kwargs={"sockets": [bound]})
    thread.start()
    url = httpx.URL(made.objects.upload(KEY, seconds=60, size=None).url)
    with socket.create_connection(("127.0.0.1", url.port or 0), 5) as connection:
        head = f"PUT {url.raw_path.decode()} HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n"
        connection.sendall(head.encode() + b"x" * 50_000)
        eventually(lambda: list(made.folder.glob(".*")), 5)
        running.should_exit = True
        started = time.monotonic()
        thread.join(10)
    assert not thread.is_alive()
    assert time.monotonic() - started < 5
    assert list(made.folder.iterdir()) == []
