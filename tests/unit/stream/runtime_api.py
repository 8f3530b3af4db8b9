"""A Lambda Runtime API of our own: hands out events, keeps what is posted, chunk by chunk."""

from __future__ import annotations

import json
import queue
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Post:
    """One answer or error as it arrived; `at` is when each chunk did."""

    path: str
    headers: dict[str, str]
    chunks: list[bytes] = field(default_factory=list)
    at: list[float] = field(default_factory=list)
    trailers: dict[str, str] = field(default_factory=dict)

    @property
    def body(self) -> bytes:
        return b"".join(self.chunks)


class FakeRuntimeApi:
    """Serves on a free port until closed."""

    def __init__(self) -> None:
        self.events: queue.Queue[dict[str, Any]] = queue.Queue()
        self.posts: queue.Queue[Post] = queue.Queue()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                body = json.dumps(owner.events.get()).encode()
                self.send_response(200)
                self.send_header("Lambda-Runtime-Aws-Request-Id", "req-1")
                self.send_header("Lambda-Runtime-Deadline-Ms", str(int(time.time() * 1000) + 5000))
                self.send_header("Lambda-Runtime-Trace-Id", "Root=1")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_POST(self) -> None:
                post = Post(self.path, {k.lower(): v for k, v in self.headers.items()})
                if post.headers.get("transfer-encoding") == "chunked":
                    self._chunked(post)
                else:
                    post.chunks.append(self.rfile.read(int(post.headers["content-length"])))
                owner.posts.put(post)
                self.send_response(202)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def _chunked(self, post: Post) -> None:
                while size := int(self.rfile.readline(), 16):
                    post.chunks.append(self.rfile.read(size))
                    post.at.append(time.monotonic())
                    self.rfile.readline()
                while line := self.rfile.readline().strip():
                    name, _, value = line.decode().partition(": ")
                    post.trailers[name] = value

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.address = f"127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
