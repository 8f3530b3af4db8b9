"""E2B's answers as a test writes them: one transport, every request kept."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from typing import Any

import httpx

from adapters import providers
from adapters.providers.e2b.provider import E2B
from sandbox_router.model.secret import Secret
from sandbox_router.model.size import Shape
from sandbox_router.model.spec import Cargo
from sandbox_router.ports import Order, Ref

KEY, TOKEN, TRAFFIC = "CANARY-key", "CANARY-token", "CANARY-traffic"
MADE = {
    "templateID": "base",
    "sandboxID": "i3k5x9q2w8e7r6t5y4u1p",
    "clientID": "x",
    "envdVersion": "0.6.0",
    "envdAccessToken": TOKEN,
    "trafficAccessToken": TRAFFIC,
    "domain": None,
}
DETAIL = {
    **MADE,
    "startedAt": "2026-11-29T16:00:00.123456789Z",
    "endAt": "2026-11-29T16:05:00Z",
    "cpuCount": 2,
    "memoryMB": 512,
    "diskSizeMB": 1024,
    "metadata": {"constal-sandbox": "r-1"},
    "state": "running",
}
REF = Ref(
    str(MADE["sandboxID"]),
    {"token": Secret(TOKEN), "traffic": Secret(TRAFFIC), "domain": Secret("e2b.app")},
)
ORDER = Order(
    "r-1",
    "base",
    Shape.of(2, 0.5),
    {"constal-sandbox": "r-1", "app.example.com/part": "ü&=%"},
    300,
    Cargo({"B": Secret("CANARY-env"), "A": Secret("1")}),
)
Reply = Callable[[httpx.Request], httpx.Response]


class Fake:
    """An E2B whose every answer the test gives; `sent` are the requests."""

    def __init__(self, *replies: Reply | httpx.Response, **settings: str) -> None:
        self.sent: list[httpx.Request] = []
        self._replies = list(replies)
        transport = httpx.MockTransport(self._answer)
        self.account = E2B(providers.profile("e2b"), Secret(KEY), transport=transport, **settings)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.sent.append(request)
        reply = self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
        return reply if isinstance(reply, httpx.Response) else reply(request)


def ok(body: Any, status: int = 200, **headers: str) -> httpx.Response:
    return httpx.Response(
        status, json=body, headers={k.replace("_", "-"): v for k, v in headers.items()}
    )


def frame(message: Mapping[str, Any], flag: int = 0) -> bytes:
    body = json.dumps(message).encode()
    return bytes([flag]) + len(body).to_bytes(4, "big") + body


def start(pid: int = 42) -> bytes:
    return frame({"event": {"start": {"pid": pid}}})


def out(data: bytes, stream: str = "stdout") -> bytes:
    return frame({"event": {"data": {stream: base64.b64encode(data).decode()}}})


def end(**fields: Any) -> bytes:
    return frame({"event": {"end": fields}})


def trailer(**error: str) -> bytes:
    return frame({"error": error} if error else {}, 2)


def stream(*frames: bytes) -> httpx.Response:
    return httpx.Response(200, content=b"".join(frames))
