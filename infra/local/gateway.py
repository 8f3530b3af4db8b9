"""The HTTP gateway of one machine: API Gateway's REST behaviour in front of the real handlers."""

from __future__ import annotations

import asyncio
import contextvars
import uuid
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from functions.catalog import BUFFERED_SECONDS
from infra.local.authorizer import Authorizer
from infra.local.connection import HEADER_BYTES, HEADERS_TOO_LARGE, RAW_HEADERS
from infra.local.invocation import Around, Stream, invoke, refusal, undisturbed
from infra.local.proxy_event import Call, Headers, Reply
from infra.local.routes import Routes
from sandbox_router.model.failure import NotFound, TooLarge, Unknown

BODY_BYTES = 10 * 1024 * 1024
THREADS = 64
HOP_BY_HOP = {"connection", "content-length", "keep-alive", "transfer-encoding", "upgrade"}

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class ClientGone(Exception):
    """Nobody waits for an answer any more."""


class Gateway:
    """An ASGI application; functions run in threads, as many at once as Lambda would run here."""

    def __init__(
        self,
        routes: Routes,
        authorizer: Authorizer,
        around: Around = undisturbed,
    ) -> None:
        """`around` is entered around every piece of a function's work."""
        self._routes = routes
        self._authorizer = authorizer
        self._around = around
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="call")

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve one request."""
        request_id = str(uuid.uuid4())
        try:
            call = await _read(scope, receive, request_id)
        except ClientGone:
            return
        except TooLarge as failure:
            await deliver(send, refusal(failure, request_id))
            return
        if sum(len(name) + len(value) for name, value in call.headers) > HEADER_BYTES:
            await deliver(send, refusal(TooLarge(HEADERS_TOO_LARGE), request_id, status=431))
            return
        context = contextvars.copy_context()
        answer = await self._answer(call, context)
        if isinstance(answer, Stream):
            await self._stream(answer, context, receive, send)
        else:
            await deliver(send, answer)

    async def _answer(self, call: Call, context: contextvars.Context) -> Reply | Stream:
        found = self._routes.find(call.method, call.path)
        if found is None:
            return refusal(NotFound(), call.request_id)
        route = found[0]
        running = asyncio.get_running_loop().run_in_executor(
            self._threads, context.run, invoke, self._authorizer, self._around, call, found
        )
        limit = route.timeout if route.stream else min(route.timeout, BUFFERED_SECONDS)
        done, _ = await asyncio.wait({running}, timeout=limit)
        if done:
            return running.result()
        # A thread cannot be ended: its work goes on unseen, as a Lambda's does after the gateway.
        return refusal(Unknown("The answer did not come in time"), call.request_id, status=504)

    async def _stream(
        self, answer: Stream, context: contextvars.Context, receive: Receive, send: Send
    ) -> None:
        """Pass frames on as they come, and no longer than somebody reads them."""
        loop = asyncio.get_running_loop()
        gone = asyncio.ensure_future(_disconnected(receive, answer.frames, context.copy()))
        await send(_start(answer.status, answer.headers))
        try:
            while not gone.done():
                frame = await loop.run_in_executor(self._threads, context.run, _next, answer.frames)
                body = {"type": "http.response.body", "body": frame or b""}
                await send({**body, "more_body": frame is not None})
                if frame is None:
                    return
        finally:
            gone.cancel()
            await loop.run_in_executor(self._threads, context.run, _close, answer.frames)


def _next(frames: Iterator[bytes]) -> bytes | None:
    return next(frames, None)


def _close(frames: Iterator[bytes]) -> None:
    if (close := getattr(frames, "close", None)) is not None:
        close()


async def _disconnected(
    receive: Receive, frames: Iterator[bytes], context: contextvars.Context
) -> None:
    """Until nobody reads any more; then what waits for a frame need not."""
    while (await receive())["type"] != "http.disconnect":
        pass
    await asyncio.to_thread(context.run, _close, frames)


async def _read(scope: Message, receive: Receive, request_id: str) -> Call:
    """The whole request; raises TooLarge as soon as it is, ClientGone."""
    headers: Headers = [
        (name.decode("latin-1"), value.decode("latin-1"))
        for name, value in scope["state"].get(RAW_HEADERS, scope["headers"])
    ]
    body = bytearray()
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > BODY_BYTES:
            raise TooLarge(f"The body is over {BODY_BYTES} bytes")
    return Call(
        method=scope["method"],
        path=scope["raw_path"].decode("ascii"),
        query=scope["query_string"].decode("ascii"),
        headers=headers,
        body=bytes(body),
        client=scope["client"][0] if scope["client"] else "127.0.0.1",
        protocol=f"HTTP/{scope['http_version']}",
        request_id=request_id,
    )


def _start(status: int, headers: Headers) -> Message:
    kept = [
        (name.encode("latin-1", "replace"), value.encode("latin-1", "replace"))
        for name, value in headers
        if name.lower() not in HOP_BY_HOP
    ]
    return {"type": "http.response.start", "status": status, "headers": kept}


async def deliver(send: Send, reply: Reply) -> None:
    """Send an answer in one piece."""
    start = _start(reply.status, reply.headers)
    if reply.status != 204:
        start["headers"].append((b"content-length", str(len(reply.body)).encode()))
    await send(start)
    await send({"type": "http.response.body", "body": b"" if reply.status == 204 else reply.body})
