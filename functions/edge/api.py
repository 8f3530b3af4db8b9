"""The door of every HTTP function: who may come in, what may be asked, one shape of answer.

    @operation({201: replies.Sandbox})
    def handler(call: Call, body: CreateBody, headers: CreateHeaders) -> Answer: ...

The parameters' types say what is parsed: `body`, `query` and `headers` are models; the OpenAPI
document is made from the same declaration.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from typing import Any, get_type_hints

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.exceptions import NotFoundError

from functions import catalog
from sandbox_router.model.failure import (
    Failure,
    Internal,
    Invalid,
    NotFound,
    Unauthenticated,
    WrongMediaType,
)
from sandbox_router.model.problem import problem

from . import wiring
from .binding import body_of, headers_of, query_of
from .call import Answer, Call
from .json import parse, raw_body, render
from .log import log, unexpected
from .params import NoQuery
from .principal import require
from .resolver import Resolver
from .sse import KIND, Frames
from .stream import Streamed

JSON, PROBLEM, BYTES = "application/json", "application/problem+json", "application/octet-stream"
_STANDING = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}

Function = Callable[..., Answer]


@dataclass
class _Turn:
    """A call under way, and the events it answers with, which pass no resolver."""

    call: Call
    events: Frames | None = None


_TURN: ContextVar[_Turn] = ContextVar("turn")


def operation(replies: Mapping[int, Any], **documented: Any) -> Callable[[Function], Operation]:
    """Make a function the handler of the catalog's row its module is named after.

    replies: status -> what its body looks like, None for no body, bytes for a file's content.
    documented: more for the OpenAPI document, see `infra.openapi`.
    """
    return lambda function: Operation(function, replies, documented)


class Operation:
    """A Lambda handler for one operation."""

    def __init__(
        self, function: Function, replies: Mapping[int, Any], documented: Mapping[str, Any]
    ) -> None:
        self.function = function
        self.replies = replies
        self.documented = documented
        self.row = catalog.http(function.__module__.rpartition(".")[2])
        self._app = Resolver()
        path = self.row.path.replace("{", "<").replace("}", ">")
        self._app.route(path, method=self.row.method)(self._serve)
        self._app.exception_handler(NotFoundError)(lambda _: _refusal(NotFound()))
        self._app.exception_handler(Failure)(_refusal)
        self._app.exception_handler(Exception)(_fault)

    @cached_property
    def models(self) -> Mapping[str, Any]:
        """Parameter -> model, for those of body, query and headers the function takes."""
        hints = get_type_hints(self.function)
        return {name: hints[name] for name in ("body", "query", "headers") if name in hints}

    def __call__(self, event: Mapping[str, Any], context: Any) -> dict[str, Any] | Streamed:
        """Answer a proxy event, whatever happens."""
        started, waited = time.perf_counter(), 0.0
        turn = _Turn(Call(self.row, event))
        token = _TURN.set(turn)
        try:
            if self.row.routed:
                with wiring.waiting(self.row) as wait:
                    answer = self._app.resolve(event, context)
                waited = wait.seconds if turn.events is None else turn.events.waited
            else:
                answer = self._app.resolve(event, context)
        except Exception as error:  # an event Powertools cannot read
            answer = _proxy(_fault(error))
        finally:
            _TURN.reset(token)
        _finish(answer, turn.call, time.perf_counter() - started, waited)
        if self.row.stream and wiring.streaming():
            return Streamed.of(answer, turn.events)
        return answer

    def _serve(self, **_path: str) -> Response[Any]:
        turn = _TURN.get()
        call = turn.call
        if self.row.scope is not None:
            require(call.principal, self.row.scope)
        answer = self.function(call, **self._parsed(call))
        turn.events = answer.events
        return _response(answer)

    def _parsed(self, call: Call) -> dict[str, Any]:
        found = {"query": query_of(self.models.get("query", NoQuery), call.query)}
        if "headers" in self.models:
            found["headers"] = headers_of(self.models["headers"], call.headers)
        if (model := self.models.get("body")) is bytes:
            found["body"] = raw_body(call.event, self.row.body_bytes)
        elif model is not None:
            found["body"] = body_of(model, _json(call, optional=model.OPTIONAL))
        return {name: value for name, value in found.items() if name in self.models}


def _json(call: Call, *, optional: bool) -> Any:
    body = raw_body(call.event, call.row.body_bytes)
    if not body:
        if optional:
            return {}
        raise Invalid("A JSON body is required", fields=(("body", "required"),))
    kind = (call.header("Content-Type") or "").partition(";")[0].strip().lower()
    if kind != JSON:
        raise WrongMediaType(f"The content type must be {JSON}")
    return parse(body)


def _response(answer: Answer) -> Response[Any]:
    """A handler's answer; a text body at a status of failure is a finished problem document."""
    headers: dict[str, str | list[str]] = dict(answer.headers)
    if answer.events is not None:
        return Response(answer.status, KIND, "", headers)
    body: str | bytes | None
    if answer.body is None or isinstance(answer.body, str | bytes):
        body = answer.body
    else:
        body = render(answer.body)
    kind = PROBLEM if answer.status >= 400 else BYTES if isinstance(body, bytes) else JSON
    return Response(answer.status, None if body is None else kind, body, headers)


def _refusal(failure: Failure) -> Response[Any]:
    """A failure as its problem document."""
    call = _TURN.get().call
    headers: dict[str, str | list[str]] = {}
    if failure.retry_after is not None:
        headers["Retry-After"] = str(max(0, math.ceil(failure.retry_after)))
    if isinstance(failure, Unauthenticated):
        headers["WWW-Authenticate"] = "Bearer"
    log().info(
        "refused",
        extra={"operation": call.row.name, "request_id": call.request_id, "code": failure.code},
    )
    text = render(problem(failure, call.request_id))
    return Response(failure.status, PROBLEM, text, headers)


def _proxy(response: Response[Any]) -> dict[str, Any]:
    headers = {name: [str(value)] for name, value in response.headers.items()}
    body = {"body": response.body, "isBase64Encoded": False}
    return {"statusCode": response.status_code, "multiValueHeaders": headers, **body}


def _fault(error: Exception) -> Response[Any]:
    """An exception nobody expected: the client learns that, and nothing else."""
    call = _TURN.get().call
    unexpected(error, operation=call.row.name, request_id=call.request_id)
    return _refusal(Internal())


def _finish(answer: dict[str, Any], call: Call, total: float, waited: float) -> None:
    headers = answer["multiValueHeaders"]
    for name, value in _STANDING.items():
        headers[name] = [value]
    headers["X-Request-Id"] = [call.request_id]
    if call.row.routed:
        headers["X-Router-Overhead-Ms"] = [f"{max(0.0, total - waited) * 1000:.1f}"]
    log().debug(
        "answered",
        extra={
            "operation": call.row.name,
            "request_id": call.request_id,
            "status": answer["statusCode"],
            "total_ms": round(total * 1000, 1),
            "provider_ms": round(waited * 1000, 1),
        },
    )
