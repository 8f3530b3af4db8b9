"""OpenSandbox's answers as a test writes them: one transport, every request kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx

from adapters import providers
from adapters.providers.opensandbox.provider import OpenSandbox
from sandbox_router.model.secret import Secret
from sandbox_router.model.size import Shape
from sandbox_router.model.spec import Cargo
from sandbox_router.ports import Order, Ref

KEY, URL = "CANARY-key", "https://sandboxes.corp.internal"
ID = "0a1b2c3d-0000-4000-8000-0123456789ab"
PROXY = f"/v1/sandboxes/{ID}/proxy/44772"
REF = Ref(ID)
DETAIL: dict[str, Any] = {
    "id": ID,
    "status": {"state": "Running", "reason": "R", "message": "CANARY-message"},
    "metadata": {"constal-sandbox": "r-1"},
    "entrypoint": ["tail", "-f", "/dev/null"],
    "createdAt": "2026-11-29T16:00:00.123456Z",
    "expiresAt": "2026-11-29T16:05:00+00:00",
    "image": {"uri": "python:3.12"},
}
ORDER = Order(
    "r-1",
    "python:3.12",
    Shape.of(0.5, 1.5),
    {"constal-tenant": "t" * 128, "constal-namespace": "", "constal-sandbox": "r-1", "team": "a"},
    300,
    Cargo({"B": Secret("CANARY-env")}),
)
Reply = Callable[[httpx.Request], httpx.Response]


class Fake:
    """A server whose answers the test gives, the last one for ever; `sent` are the requests."""

    def __init__(self, *replies: Reply | httpx.Response, url: str = URL, **settings: str) -> None:
        self.sent: list[httpx.Request] = []
        self._replies = list(replies)
        transport = httpx.MockTransport(self._answer)
        profile = providers.profile("opensandbox")
        self.account = OpenSandbox(profile, Secret(KEY), url, transport=transport, **settings)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.sent.append(request)
        reply = self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
        return reply if isinstance(reply, httpx.Response) else reply(request)

    @property
    def asked(self) -> list[str]:
        """Method, path and query of each request."""
        return [f"{r.method} {r.url.raw_path.decode()}" for r in self.sent]


def ok(body: Any, status: int = 200, **headers: str) -> httpx.Response:
    return httpx.Response(
        status, json=body, headers={k.replace("_", "-"): v for k, v in headers.items()}
    )


def error(status: int, code: str) -> httpx.Response:
    return ok({"code": code, "message": "CANARY-said"}, status)


GONE = error(404, "DOCKER::SANDBOX_NOT_FOUND")


def detail(**changes: Any) -> httpx.Response:
    return ok({**DETAIL, **changes})


def state(name: str, **changes: Any) -> httpx.Response:
    return detail(status={"state": name}, **changes)


def page(*items: dict[str, Any], number: int = 1, more: bool = False) -> httpx.Response:
    about = {"page": number, "pageSize": 100, "totalItems": 9, "totalPages": 9, "hasNextPage": more}
    return ok({"items": list(items), "pagination": about})


def item(name: str, created: str, **tags: str) -> dict[str, Any]:
    return {**DETAIL, "id": name, "createdAt": f"2026-11-29T{created}Z", "metadata": tags}


def events(*events: dict[str, Any], prefix: str = "") -> httpx.Response:
    frames = "".join(f"{prefix}{json.dumps(event)}\n\n" for event in events)
    return httpx.Response(200, content=frames.encode())


def started(run: str = "c0ffee") -> httpx.Response:
    return events({"type": "init", "text": run}, {"type": "execution_complete"})


def log(data: bytes, cursor: int | str) -> httpx.Response:
    headers = {"execd-commands-tail-cursor": str(cursor)}
    return httpx.Response(200, content=data, headers=headers)


def status(**fields: Any) -> httpx.Response:
    return ok({"id": "c0ffee", "running": False, **fields})
