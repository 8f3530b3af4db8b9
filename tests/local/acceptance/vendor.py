"""A vendor no real one would be: it sends its callers elsewhere, or quotes them."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "e2b_CANARY-account-key"


class Elsewhere:
    """A place nobody may come to; counts who does."""

    def __init__(self) -> None:
        self.visits: list[str] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}/"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, peer = self._listening.accept()
                self.visits.append(str(peer))
                connection.close()

    def close(self) -> None:
        self._listening.close()


class Vendor(ThreadingHTTPServer):
    """Answers E2B's control plane as `mode` says: `none` has nothing, `redirect` sends every call
    elsewhere, `quote` refuses each create with all it was sent in its message.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.mode = "none"
        self.elsewhere = Elsewhere()
        self.asked: list[tuple[str, str]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def pool(self) -> dict[str, Any]:
        """Its row of the pools' file."""
        addresses = {"api_url": self.url, "sandbox_url": f"{self.url}/sandbox"}
        return {"id": "delta", "kind": "e2b", "key": KEY, "region": "far", **addresses}

    @classmethod
    @contextmanager
    def running(cls) -> Iterator[Vendor]:
        vendor = cls()
        threading.Thread(target=vendor.serve_forever, daemon=True).start()
        try:
            yield vendor
        finally:
            vendor.shutdown()
            vendor.server_close()
            vendor.elsewhere.close()


class _Handler(BaseHTTPRequestHandler):
    server: Vendor
    protocol_version = "HTTP/1.1"

    def _answer(self) -> None:
        sent = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        self.server.asked.append((self.command, self.path))
        if self.server.mode == "redirect":
            self._say(307, {}, Location=self.server.elsewhere.url)
        elif self.command == "POST":
            quoted = f"bad request: {sent} from {self.headers.get('X-API-Key')}"
            self._say(400, {"code": 400, "message": quoted})
        elif self.command == "GET" and self.path.startswith("/v2/sandboxes"):
            self._say(200, [])
        else:
            self._say(404, {"code": 404, "message": "not found"})

    do_GET = do_POST = do_DELETE = _answer

    def _say(self, status: int, body: object, **headers: str) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(data)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing on the terminal."""
