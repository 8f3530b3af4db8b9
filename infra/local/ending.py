"""What a client reads whose request is still under way when the server ends: a problem document."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from infra.local.invocation import refusal
from sandbox_router.model.failure import Unknown
from sandbox_router.model.problem import problem

STATUS = 503
RETRY_SECONDS = 5

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]


def ending(app: Application) -> Application:
    """The same ASGI application, with an answer when it is cancelled: what it began goes on unseen.

    An answer that has begun cannot be taken back: events end with an `error`, anything else is cut.
    """

    async def served(scope: Message, receive: Receive, send: Send) -> None:
        begun: Message = {}

        async def noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                begun.update(message)
            await send(message)

        try:
            await app(scope, receive, noted)
        except asyncio.CancelledError:
            if not begun:
                await _refuse(send)
            elif _is_events(begun):
                await _end(send, _trace(begun))
            else:
                raise

    return served


def _lost() -> Unknown:
    return Unknown("The Router was stopped before it knew", retry_after=RETRY_SECONDS)


async def _refuse(send: Send) -> None:
    reply = refusal(_lost(), str(uuid.uuid4()), status=STATUS)
    given = [
        *reply.headers,
        ("Content-Length", str(len(reply.body))),
        ("Connection", "close"),
    ]
    headers = [(name.lower().encode(), value.encode()) for name, value in given]
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": reply.body})


async def _end(send: Send, request_id: str) -> None:
    text = json.dumps(problem(_lost(), request_id) | {"status": STATUS})
    await send({"type": "http.response.body", "body": f"event: error\ndata: {text}\n\n".encode()})


def _trace(begun: Message) -> str:
    ids = [value for name, value in begun["headers"] if name.lower() == b"x-request-id"]
    return str(ids[0].decode("latin-1")) if ids else str(uuid.uuid4())


def _is_events(begun: Message) -> bool:
    return any(
        name.lower() == b"content-type" and value.startswith(b"text/event-stream")
        for name, value in begun["headers"]
    )
