"""Answers of AWS by hand, in front of moto or behind it."""

from __future__ import annotations

import json
from collections import deque
from types import TracebackType
from typing import Any, Self

from botocore.awsrequest import AWSResponse  # type: ignore[import-untyped]


class _Body:
    def __init__(self, data: bytes) -> None:
        self._data = data

    def stream(self, **_: Any) -> list[bytes]:
        data, self._data = self._data, b""
        return [data] if data else []


class Answer(AWSResponse):  # type: ignore[misc]
    """An answer that can be given once; `again` makes another of it."""

    def __init__(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        headers = {"content-type": "application/x-amz-json-1.0"}
        super().__init__("https://aws.test/", status, headers, _Body(data))
        self.body = body

    def again(self) -> Answer:
        return Answer(self.status_code, self.body)

    def __repr__(self) -> str:
        return f"{self.status_code} {self.body.get('__type', '')}".strip()


def answer(status: int, code: str = "", **body: Any) -> Answer:
    """What DynamoDB says on the wire: a code, or a result."""
    return Answer(status, {**({"__type": code, "message": "m"} if code else {}), **body})


class Faults:
    """Hooks into a client: what is sent, and scripts for the next calls.

    before: instead of the call (None lets it through). after: the call happens, its answer is lost.
    """

    def __init__(self, client: Any) -> None:
        self.client = client
        self.sent: list[str] = []
        self.bodies: list[dict[str, Any]] = []
        self._before: deque[Any] = deque()
        self._after: deque[Exception] = deque()
        self._service = client.meta.service_model.service_id.hyphenize()

    def before(self, *faults: Any) -> None:
        self._before.extend(faults)

    def after(self, *faults: Exception) -> None:
        self._after.extend(faults)

    def __enter__(self) -> Self:
        events = self.client.meta.events
        events.register_first(f"before-send.{self._service}", self._sending)
        events.register(f"response-received.{self._service}", self._received)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        events = self.client.meta.events
        events.unregister(f"before-send.{self._service}", self._sending)
        events.unregister(f"response-received.{self._service}", self._received)

    def _sending(self, request: Any, **_: Any) -> Any:
        target = request.headers["X-Amz-Target"]
        text = target.decode() if isinstance(target, bytes) else target
        self.sent.append(text.partition(".")[2])
        self.bodies.append(json.loads(request.body))
        fault = self._before.popleft() if self._before else None
        if isinstance(fault, Exception):
            raise fault
        if fault is None:
            return None
        request.url = "https://nobody.test/"  # every hook is called, and moto's is not for this one
        return fault.again()

    def _received(self, **_: Any) -> None:
        if self._after:
            raise self._after.popleft()
