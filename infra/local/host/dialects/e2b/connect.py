"""The Connect protocol with JSON, as E2B's envd speaks it.

Facts: the Connect protocol's public description; envd's process.proto and filesystem.proto.
Unary: plain JSON. Streams: frames of one flag byte, a 32-bit length and JSON; flag 2 ends one.
"""

from __future__ import annotations

import json
import struct
from collections.abc import AsyncIterator
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

UNARY_TYPE = "application/json"
STREAM_TYPE = "application/connect+json"
_END = 2
_MAX_FRAME = 16 * 1024 * 1024
_STATUS = {
    "canceled": 499,
    "unknown": 500,
    "invalid_argument": 400,
    "deadline_exceeded": 504,
    "not_found": 404,
    "already_exists": 409,
    "permission_denied": 403,
    "resource_exhausted": 429,
    "failed_precondition": 400,
    "aborted": 409,
    "out_of_range": 400,
    "unimplemented": 501,
    "internal": 500,
    "unavailable": 503,
    "unauthenticated": 401,
}


class RpcError(Exception):
    """An error of a call, by Connect's code."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

    def to_json(self) -> dict[str, str]:
        """Return it as Connect writes it."""
        return {"code": self.code, "message": self.message}

    def response(self) -> Response:
        """Return it as the answer of a unary call."""
        return JSONResponse(self.to_json(), _STATUS[self.code])


def frame(message: object, flags: int = 0) -> bytes:
    """Return one frame of a stream."""
    data = json.dumps(message, separators=(",", ":")).encode()
    return struct.pack(">BI", flags, len(data)) + data


def end_frame(error: RpcError | None = None) -> bytes:
    """Return the last frame of a stream."""
    return frame({} if error is None else {"error": error.to_json()}, _END)


def stream_error(error: RpcError) -> Response:
    """Return an error as the answer of a streaming call, which is always 200."""
    return Response(end_frame(error), 200, media_type=STREAM_TYPE)


def stream_response(frames: AsyncIterator[bytes]) -> Response:
    """Return a stream of frames."""
    return StreamingResponse(frames, 200, media_type=STREAM_TYPE)


async def read_unary(request: Request) -> dict[str, Any]:
    """Return the message of a unary call."""
    _check_type(request, UNARY_TYPE)
    return _parse(await request.body() or b"{}")


async def read_frames(request: Request) -> AsyncIterator[dict[str, Any]]:
    """Yield the messages of a streaming call as they arrive."""
    _check_type(request, STREAM_TYPE)
    buffer = bytearray()
    async for chunk in request.stream():
        buffer += chunk
        while len(buffer) >= 5:
            flags, length = struct.unpack(">BI", buffer[:5])
            if length > _MAX_FRAME:
                raise RpcError("resource_exhausted", "the message is too large")
            if len(buffer) < 5 + length:
                break
            data = bytes(buffer[5 : 5 + length])
            del buffer[: 5 + length]
            if flags & 1:
                raise RpcError("internal", "protocol error: compressed without a negotiated codec")
            if not flags & _END:
                yield _parse(data)
    if buffer:
        raise RpcError("invalid_argument", "protocol error: incomplete envelope")


async def read_first(request: Request) -> dict[str, Any]:
    """Return the one message of a server-streaming call."""
    found = [message async for message in read_frames(request)]
    if len(found) != 1:
        raise RpcError("invalid_argument", "protocol error: exactly one message is expected")
    return found[0]


def timeout_seconds(request: Request) -> float | None:
    """Return the caller's time limit, `connect-timeout-ms`."""
    text = request.headers.get("connect-timeout-ms")
    if text is None:
        return None
    if not text.isdigit() or len(text) > 10:
        raise RpcError("invalid_argument", "invalid connect-timeout-ms")
    return int(text) / 1000


def _check_type(request: Request, wanted: str) -> None:
    found = request.headers.get("content-type", "").partition(";")[0].strip()
    if found != wanted:
        raise RpcError("invalid_argument", f"the content type must be {wanted}")


def _parse(data: bytes) -> dict[str, Any]:
    try:
        message = json.loads(data)
    except ValueError as error:
        raise RpcError("invalid_argument", f"invalid JSON: {error}") from error
    if not isinstance(message, dict):
        raise RpcError("invalid_argument", "the message must be a JSON object")
    return message
