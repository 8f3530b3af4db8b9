"""One call of a function behind the gateway: authorizer, event, handler, answer. Blocking."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from threading import Lock
from typing import Any

from functions.edge.log import unexpected
from functions.edge.stream import Streamed
from infra.local.authorizer import Authorizer, Denied
from infra.local.proxy_event import Call, Headers, Malformed, Reply, Target, proxy_event, reply_of
from infra.local.routes import Context, Route
from sandbox_router.model.failure import Failure, Internal, Invalid, StoreBusy, Unauthenticated
from sandbox_router.model.failure_class import Effect
from sandbox_router.model.problem import problem

Around = Callable[[Call], AbstractContextManager[object]]


@dataclass(frozen=True)
class Stream:
    """A function's answer in frames, ready for the wire."""

    status: int
    headers: Headers
    frames: Iterator[bytes]


def undisturbed(call: Call) -> AbstractContextManager[object]:
    """Nothing around a function's work."""
    return nullcontext()


def invoke(
    authorizer: Authorizer, around: Around, call: Call, found: tuple[Route, Target]
) -> Reply | Stream:
    """Call the function behind a route; every failure is an answer."""
    route, target = found
    try:
        admitted = None if route.public else authorizer.admit(call, target)
        event = proxy_event(call, target, datetime.now(UTC), admitted)
    except Denied:
        return refusal(Unauthenticated(), call.request_id)
    except Malformed as error:
        return refusal(Invalid(str(error)), call.request_id)
    except Exception as error:  # its text may hold anything
        unexpected(error, operation="authorize", request_id=call.request_id)
        return refusal(StoreBusy(retry_after=1), call.request_id, outcome=Effect.NONE)
    try:
        context = Context(route.function, route.timeout, route.memory)
        with around(call):
            answer = _usable(route.handler(event, context), call.request_id)
    except Exception as error:
        unexpected(error, operation=route.function, request_id=call.request_id)
        return refusal(Internal(), call.request_id, status=502, outcome=Effect.UNKNOWN)
    if isinstance(answer, Stream):
        return replace(answer, frames=_Surrounded(answer.frames, around, call))
    return answer


class _Surrounded:
    """Frames with `around` about the making of each. Another thread may close them meanwhile,
    which a generator that is at work does not take.
    """

    def __init__(self, frames: Iterator[bytes], around: Around, call: Call) -> None:
        self._frames, self._around, self._call = frames, around, call
        one_by_one = isinstance(frames, Generator)
        self._turn: AbstractContextManager[Any] = Lock() if one_by_one else nullcontext()

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        with self._turn, self._around(self._call):
            return next(self._frames)

    def close(self) -> None:
        if (close := getattr(self._frames, "close", None)) is not None:
            with self._turn, self._around(self._call):
                close()


def _usable(answer: Any, request_id: str) -> Reply | Stream:
    if isinstance(answer, Streamed):
        headers = _traced(list(answer.headers.items()), request_id)
        return Stream(answer.status, headers, iter(answer.frames))
    reply = reply_of(answer)
    return Reply(reply.status, _traced(reply.headers, request_id), reply.body)


def _traced(headers: Headers, request_id: str) -> Headers:
    """Every answer carries a request id."""
    if any(name.lower() == "x-request-id" for name, _ in headers):
        return headers
    return [*headers, ("X-Request-Id", request_id)]


def refusal(
    failure: Failure, request_id: str, status: int | None = None, outcome: Effect | None = None
) -> Reply:
    """The gateway's own answer: a problem document. `status` where only the gateway has it."""
    document = problem(failure, request_id)
    document |= {} if status is None else {"status": status}
    document |= {} if outcome is None else {"outcome": str(outcome)}
    headers = [
        ("Content-Type", "application/problem+json"),
        ("X-Request-Id", request_id),
        ("Cache-Control", "no-store"),
    ]
    if failure.retry_after is not None:
        headers.append(("Retry-After", f"{failure.retry_after:.0f}"))
    if isinstance(failure, Unauthenticated):
        headers.append(("WWW-Authenticate", "Bearer"))
    return Reply(document["status"], headers, json.dumps(document).encode())
