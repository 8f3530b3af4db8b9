"""Signed requests for objects, answered here as S3 does elsewhere: in pieces, of any size."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from typing import Any
from urllib.parse import parse_qsl, unquote

from adapters.folder import PLACE, FolderObjects
from infra.local.gateway import ClientGone, deliver
from infra.local.invocation import refusal
from sandbox_router.model.failure import Failure, Forbidden, TooLarge
from sandbox_router.session.transfers import LARGEST

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]

HEADERS = (
    (b"content-type", b"application/octet-stream"),
    (b"content-disposition", b"attachment"),
    (b"cache-control", b"no-store"),
)


class ObjectDoor:
    """An ASGI application in front of another, which gets everything else."""

    def __init__(self, app: Application, objects: FolderObjects) -> None:
        self._app, self._objects = app, objects

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve one request."""
        path = scope["raw_path"].decode("ascii") if scope["type"] == "http" else ""
        if not path.startswith(PLACE):
            await self._app(scope, receive, send)
            return
        try:
            await self._serve(scope, unquote(path.removeprefix(PLACE)), receive, send)
        except Failure as failure:
            await deliver(send, refusal(failure, str(uuid.uuid4())))
        except ClientGone:
            return

    async def _serve(self, scope: Message, key: str, receive: Receive, send: Send) -> None:
        query = dict(parse_qsl(scope["query_string"].decode("ascii"), keep_blank_values=True))
        size = self._objects.admit(scope["method"], key, query)
        if scope["method"] == "GET":
            await self._read(key, send)
            return
        said = dict(scope["headers"]).get(b"content-length", b"")
        if size is not None and said != str(size).encode():
            raise Forbidden("This URL takes exactly the size it was made for")
        loop = asyncio.get_running_loop()
        await asyncio.to_thread(self._objects.put, key, _body(receive, loop))
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def _read(self, key: str, send: Send) -> None:
        with self._objects.read(key) as content:
            headers = [*HEADERS, (b"content-length", str(content.size).encode())]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            pieces = iter(content.pieces)
            while piece := await asyncio.to_thread(next, pieces, b""):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


def _body(receive: Receive, loop: asyncio.AbstractEventLoop) -> Iterator[bytes]:
    """The request's bytes as they come, for a thread that waits for them; raises TooLarge,
    ClientGone.
    """
    more, size = True, 0
    while more:
        message = asyncio.run_coroutine_threadsafe(_next(receive), loop).result()
        if message["type"] == "http.disconnect":
            raise ClientGone
        more, body = message.get("more_body", False), message.get("body", b"")
        size += len(body)
        if size > LARGEST:
            raise TooLarge(f"A file is at most {LARGEST} bytes")
        yield body


async def _next(receive: Receive) -> Message:
    return await receive()
