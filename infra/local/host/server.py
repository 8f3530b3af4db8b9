"""The HTTP server: uvicorn on a loopback socket, able to cut a connection without an answer."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import cast

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

_CUT = "host.cut"


class CuttableProtocol(H11Protocol):
    """HTTP/1.1 that hands its transport's `abort` to the application."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        app = cast(ASGIApp, self.app)

        async def with_cut(scope: Scope, receive: Receive, send: Send) -> None:
            scope[_CUT] = transport.abort
            await app(scope, receive, send)

        self.app = with_cut


async def cut(scope: Scope) -> None:
    """Cut the client's connection now; nothing more is sent on it."""
    abort: Callable[[], None] = scope[_CUT]
    abort()
    # The protocol learns of the loss in the loop's next round; until then it would answer 500.
    for _ in range(3):
        await asyncio.sleep(0)


class Server(uvicorn.Server):
    """A uvicorn server whose start and stop belong to the host."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        on_started: Callable[[], None],
        on_stopping: Callable[[], Awaitable[None]],
    ) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=CuttableProtocol,
                loop="asyncio",
                ws="none",
                lifespan="off",
                log_level="warning",
                access_log=False,
                backlog=2048,
                timeout_keep_alive=75,
                timeout_graceful_shutdown=1,
            )
        )
        self._on_started = on_started
        self._on_stopping = on_stopping

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then tell."""
        await super().startup(sockets)
        self._on_started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End what runs first: open streams end with it, and need no waiting for."""
        await self._on_stopping()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to the host."""
        yield


def loopback(port: int) -> socket.socket:
    """Return a bound socket on 127.0.0.1; port 0 takes any free one."""
    # The protocol must be named: asyncio turns Nagle's delay off only where it says TCP.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    return listener
