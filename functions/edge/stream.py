"""Answers in frames, for functions behind a streaming integration."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Streamed:
    """Status and headers first, then the body in frames; closing `frames` ends the work."""

    status: int
    headers: Mapping[str, str]
    frames: Iterator[bytes] = field(repr=False)

    @classmethod
    def of(cls, answer: Mapping[str, Any], frames: Iterator[bytes] | None = None) -> Streamed:
        """A proxy answer with these frames, or with its body in one."""
        headers = {name: values[-1] for name, values in answer["multiValueHeaders"].items()}
        if frames is not None:
            return cls(answer["statusCode"], headers, frames)
        body = answer.get("body") or ""
        data = base64.b64decode(body) if answer.get("isBase64Encoded") else body.encode()
        return cls(answer["statusCode"], headers, iter((data,) if data else ()))

    def collected(self) -> dict[str, Any]:
        """The proxy answer of a function whose integration does not stream; text only."""
        return {
            "statusCode": self.status,
            "multiValueHeaders": {name: [value] for name, value in self.headers.items()},
            "body": b"".join(self.frames).decode(),
            "isBase64Encoded": False,
        }
