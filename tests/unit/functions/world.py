"""The handlers over a real Router on fakes, called as API Gateway calls them."""

from __future__ import annotations

import base64
import json
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import quote

from adapters.providers import profile
from functions import catalog
from functions.edge.config import EventSource
from functions.edge.stream import Streamed
from functions.edge.wiring import Outward
from sandbox_router.model.failure import FileMissing, NotFound, TooLarge
from sandbox_router.model.pool import Pool, Prepared
from sandbox_router.model.secret import Secret
from sandbox_router.model.size import parse
from sandbox_router.model.spec import Isolation
from sandbox_router.ports import Command, Content, Endpoint, Entry, Exit, Output, Provider, Ref
from sandbox_router.router import Router
from tests.fakes.bus import MemoryBus
from tests.fakes.clock import FakeClock
from tests.fakes.ids import FakeIds
from tests.fakes.objects import MemoryObjects
from tests.fakes.provider import FakeProvider
from tests.fakes.queue import MemoryQueue
from tests.fakes.table import MemoryTable
from tests.fakes.vault import FakeVault

REQUEST_ID = "11111111-2222-3333-4444-555555555555"
NOBODY = "sbx-" + "a" * 26
SIZES = ("1x1", "2x4", "4x8")
Params = Mapping[str, str | Sequence[str]]


@dataclass
class LiveProvider(FakeProvider):
    """A fake account whose instances have files, ports and a scripted command."""

    files: dict[str, bytes] = field(default_factory=dict)
    events: deque[list[Output | Exit | Exception]] = field(default_factory=deque)
    commands: list[Command] = field(default_factory=list)

    def run(self, ref: Ref, command: Command) -> Iterator[Output | Exit]:
        self.commands.append(command)
        for event in self.events.popleft():
            if isinstance(event, Exception):
                raise event
            yield event

    @contextmanager
    def read_file(self, ref: Ref, path: str, limit: int) -> Iterator[Iterator[bytes]]:
        data = self.files.get(path)
        if data is None:
            raise FileMissing
        if len(data) > limit:
            raise TooLarge
        yield iter((data[:3], data[3:]))

    def write_file(self, ref: Ref, path: str, content: Content) -> None:
        self.files[path] = b""
        for piece in content.pieces:
            self.files[path] += piece

    def move_file(self, ref: Ref, source: str, destination: str) -> None:
        self.files[destination] = self.files.pop(source)

    def remove_file(self, ref: Ref, path: str) -> None:
        if self.files.pop(path, None) is None:
            raise FileMissing

    def list_directory(self, ref: Ref, path: str) -> tuple[Entry, ...]:
        names = sorted(name for name in self.files if name.startswith(path))
        return tuple(
            Entry(name.rsplit("/", 1)[1], name, "file", len(self.files[name]), 1_000)
            for name in names
        )

    def open_port(self, ref: Ref, port: int) -> Endpoint:
        return Endpoint(f"https://{port}-box.example", {"x-token": "preview"})

    def close_port(self, ref: Ref, port: int) -> None: ...


class FakePools:
    """`ports.Pools` over fake accounts."""

    def __init__(self, *pools: Pool, accounts: Mapping[str, Provider]) -> None:
        self._pools = {pool.id: pool for pool in pools}
        self._accounts = accounts

    def all(self) -> Sequence[Pool]:
        return tuple(self._pools.values())

    def pool(self, pool_id: str) -> Pool:
        if pool_id not in self._pools:
            raise NotFound
        return self._pools[pool_id]

    def provider(self, pool_id: str) -> Provider:
        return self._accounts[self.pool(pool_id).id]


def pool(pool_id: str, position: int = 0) -> Pool:
    shapes = [(size, parse(size)[0]) for size in SIZES]
    prepared = tuple(Prepared(f"tmpl-{size}", shape) for size, shape in shapes)
    return Pool(
        id=pool_id,
        profile=profile("e2b"),
        position=position,
        region="us-east-1",
        geo="us",
        isolation=Isolation.MICROVM,
        images={"default": prepared},
    )


class World:
    """A deployment: two pools, its clock, and the way in."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.first = LiveProvider("first", self.clock)
        self.second = LiveProvider("second", self.clock)
        self.table = MemoryTable()
        self.bus = MemoryBus()
        sources = {
            "acme.orders": EventSource("acme", frozenset({"sandboxes:write"}), "123456789012"),
            "acme.reader": EventSource("acme", frozenset({"sandboxes:read"})),
            "other.app": EventSource("other", frozenset({"sandboxes:write"})),
        }
        self.outward = Outward(self.bus, self.bus, lambda: sources)
        self.queue = MemoryQueue(self.clock)
        self.objects = MemoryObjects()
        accounts = {"pool-a": self.first, "pool-b": self.second}
        self.pools = FakePools(pool("pool-a"), pool("pool-b", 1), accounts=accounts)
        self.router = Router(
            table=self.table,
            queue=self.queue,
            pools=self.pools,
            vault=FakeVault(),
            objects=self.objects,
            clock=self.clock,
            ids=FakeIds(),
            deployment="test",
            pepper=Secret("pepper" * 6),
        )

    def created(self, **body: Any) -> str:
        """The id of a sandbox that runs."""
        answer = call("create_sandbox", body=body)
        assert answer.status == 201, answer.text
        return str(answer.json["id"])

    def captured(self, sandbox_id: str, **body: Any) -> str:
        """The id of a snapshot of it that is ready."""
        answer = on("take_snapshot", sandbox_id, body=body)
        assert answer.status == 201, answer.text
        return str(answer.json["id"])

    def uploaded(self, sandbox_id: str) -> str:
        """The id of an upload whose bytes are there."""
        offer = on("offer_upload", sandbox_id, body={"path": "/a"}).json
        self.put(offer, b"x")
        return str(offer["upload_id"])

    def put(self, offer: Mapping[str, Any], data: bytes) -> None:
        """What a client does with the URL of an upload."""
        key = offer["url"].removeprefix("https://objects.example/").partition("?")[0]
        self.objects.put(key, [data])


@dataclass(frozen=True)
class Got:
    """An HTTP answer."""

    status: int
    headers: Mapping[str, str]
    data: bytes

    @property
    def text(self) -> str:
        return self.data.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.data)

    @property
    def code(self) -> str:
        """The problem's code."""
        assert self.headers["content-type"] == "application/problem+json"
        return str(self.json["code"])


def multi(values: Params) -> dict[str, list[str]] | None:
    found = {k: [v] if isinstance(v, str) else list(v) for k, v in values.items()}
    return found or None


def event(
    name: str,
    *,
    path: Mapping[str, str] | None = None,
    query: Params | None = None,
    headers: Params | None = None,
    body: Any = None,
    tenant: str | None = "acme",
    scopes: str = "sandboxes:read sandboxes:write",
) -> dict[str, Any]:
    """A REST proxy event; a body that is no text or bytes goes as JSON."""
    row = catalog.http(name)
    given = dict(headers or {})
    filled = row.path
    for key, value in (path or {}).items():
        filled = filled.replace("{" + key + "}", quote(value, safe=""))
    encoded = isinstance(body, bytes)
    if body is not None and not isinstance(body, str | bytes):
        body = json.dumps(body)
        given.setdefault("Content-Type", "application/json")
    authorizer = {"tenant": tenant, "key_id": "key-1", "scopes": scopes} if tenant else None
    lists, queries = multi(given), multi(query or {})
    return {
        "resource": row.path,
        "path": filled,
        "httpMethod": row.method,
        "headers": {k: v[-1] for k, v in lists.items()} if lists else None,
        "multiValueHeaders": lists,
        "queryStringParameters": {k: v[-1] for k, v in queries.items()} if queries else None,
        "multiValueQueryStringParameters": queries,
        "pathParameters": dict(path or {}) or None,
        "stageVariables": None,
        "requestContext": {
            "requestId": REQUEST_ID,
            "stage": "v",
            "path": f"/v{filled}",
            "httpMethod": row.method,
            **({"authorizer": authorizer} if authorizer else {}),
        },
        "body": base64.b64encode(body).decode() if isinstance(body, bytes) else body,
        "isBase64Encoded": encoded,
    }


def invoke(name: str, given: Mapping[str, Any]) -> Got:
    """What the real handler of an operation answers to an event."""
    answer = import_module(catalog.http(name).module).handler(given, None)
    proxy = answer.collected() if isinstance(answer, Streamed) else answer
    json.dumps(proxy)  # what Lambda will do
    body = proxy.get("body") or ""
    data = base64.b64decode(body) if proxy.get("isBase64Encoded") else body.encode()
    headers = {k.lower(): v[-1] for k, v in proxy["multiValueHeaders"].items()}
    return Got(proxy["statusCode"], headers, data)


def call(name: str, **given: Any) -> Got:
    """Call an operation with the parts of an event."""
    return invoke(name, event(name, **given))


def on(name: str, sandbox_id: str, **given: Any) -> Got:
    """Call an operation of a sandbox."""
    return call(name, path={"id": sandbox_id, **given.pop("path", {})}, **given)


def sample(name: str) -> dict[str, Any]:
    """An event of `events/api`."""
    path = Path(__file__).parents[3] / "events" / "api" / f"{name}.json"
    found: dict[str, Any] = json.loads(path.read_text())
    return found
