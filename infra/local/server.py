"""The web server under the gateway: loopback only, stopped by its owner, not by signals."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import uvicorn

from infra.local.connection import Connection
from infra.local.ending import ending

LOOPBACK = "127.0.0.1"
DRAIN_SECONDS = 4
WAITING = 256
"""Threads that may wait for a client. asyncio's own are six on two cores, and each upload has one:
a few that came slowly would hold up every download, and the end of every stream.
"""


class Server(uvicorn.Server):
    """Uvicorn, leaving the signals to the process that runs it."""

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until `should_exit`."""
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(WAITING, "client"))
        await super().serve(sockets)

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Nothing to capture."""
        yield


def bind(port: int) -> socket.socket:
    """A socket on a loopback port, 0 for any free one; raises OSError when it is taken."""
    # With its protocol named: asyncio spares only such connections the 40 ms of Nagle's algorithm.
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((LOOPBACK, port))
    except OSError:
        bound.close()
        raise
    return bound


def server(app: Any) -> Server:
    """A server for an ASGI application; `run(sockets=[...])` serves until `should_exit`, and what
    is not done `DRAIN_SECONDS` later is answered as unknown.
    """
    return Server(
        uvicorn.Config(
            ending(app),
            http=Connection,
            loop="asyncio",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_keep_alive=75,
            timeout_graceful_shutdown=DRAIN_SECONDS,
        )
    )
