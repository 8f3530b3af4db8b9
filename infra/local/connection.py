"""One HTTP connection: uvicorn's, with the header names as sent and problem documents for noise."""

from __future__ import annotations

import asyncio
import json
import uuid
from typing import Any

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import STATUS_PHRASES, H11Protocol
from uvicorn.server import ServerState

from sandbox_router.model.failure import Invalid, TooLarge
from sandbox_router.model.problem import problem

RAW_HEADERS = "raw_headers"
HEADER_BYTES = 10 * 1024
HEADERS_TOO_LARGE = f"Headers are over {HEADER_BYTES} bytes"
LINGER_SECONDS = 1.0


class Connection(H11Protocol):
    """Keeps `scope["state"]["raw_headers"]`; answers malformed requests with a problem document."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, dict(app_state), _loop)
        self.conn: Parser = Parser(self.app_state)
        self._refused = False

    def data_received(self, data: bytes) -> None:
        if not self._refused:
            super().data_received(data)

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP, when an answer can still be read, and hang up."""
        self._refused = True
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            if self.cycle is not None:
                self.cycle.disconnected = True  # its own answer must not follow ours
            self._refuse(self.conn.hint)
        # Closing over unread bytes resets the connection, and the answer is lost on its way.
        self.loop.call_later(LINGER_SECONDS, self.transport.close)

    def _refuse(self, hint: int) -> None:
        request_id = str(uuid.uuid4())
        oversize = hint == 431
        failure = TooLarge(HEADERS_TOO_LARGE) if oversize else Invalid()
        status = hint if oversize else 400
        body = json.dumps(problem(failure, request_id) | {"status": status}).encode()
        headers = [
            (b"content-type", b"application/problem+json"),
            (b"content-length", str(len(body)).encode()),
            (b"x-request-id", request_id.encode()),
            (b"connection", b"close"),
        ]
        try:
            for event in (
                h11.Response(status_code=status, headers=headers, reason=STATUS_PHRASES[status]),
                h11.Data(data=body),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
        except h11.LocalProtocolError:
            return  # an answer was under way: cutting it short is all that is left


class Parser(h11.Connection):
    """h11, remembering the last request's header names and the last error's status."""

    def __init__(self, state: dict[str, Any]) -> None:
        super().__init__(h11.SERVER, max_incomplete_event_size=HEADER_BYTES)
        self._state = state
        self.hint = 400

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """The next event, noted."""
        try:
            event = super().next_event()
        except h11.RemoteProtocolError as error:
            self.hint = error.error_status_hint
            raise
        if isinstance(event, h11.Request):
            self._state[RAW_HEADERS] = list(event.headers.raw_items())
        return event
