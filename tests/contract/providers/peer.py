"""A TCP peer that plays a script: what a provider's socket can do that no polite server would."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

Script = Callable[[socket.socket, threading.Event], None]
"""Plays one connection whose request was read; the event says that the test is over."""


@dataclass
class Peer:
    """Where it listens and the raw requests it got."""

    port: int
    requests: list[bytes] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def peer(script: Script, *, reads: bool = True) -> Iterator[Peer]:
    """Listen on a free port and play the script on every connection, after its request."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        listening = Peer(server.getsockname()[1])

        def serve() -> None:
            with suppress(OSError):
                while not over.is_set():
                    connection, _ = server.accept()
                    threading.Thread(target=play, args=(connection,), daemon=True).start()

        def play(connection: socket.socket) -> None:
            with connection, suppress(OSError):
                if reads:
                    listening.requests.append(_request(connection))
                script(connection, over)

        threading.Thread(target=serve, daemon=True).start()
        try:
            yield listening
        finally:
            over.set()
            with suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)


def _request(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        if not (part := connection.recv(65_536)):
            return data
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    size = next(
        (int(line[15:]) for line in head.lower().split(b"\r\n") if line[:15] == b"content-length:"),
        0,
    )
    while len(body) < size and (part := connection.recv(65_536)):
        body += part
    return head + b"\r\n\r\n" + body


def says(*parts: bytes, every: float = 0.0) -> Script:
    """Send the parts, waiting between them, and end the connection."""

    def script(connection: socket.socket, over: threading.Event) -> None:
        for part in parts:
            connection.sendall(part)
            if every and over.wait(every):
                return

    return script


def answer(status: int, body: bytes = b"", *headers: str) -> bytes:
    """A whole HTTP answer that ends its connection."""
    lines = (f"HTTP/1.1 {status} X", f"content-length: {len(body)}", "connection: close", *headers)
    return "\r\n".join((*lines, "", "")).encode() + body
