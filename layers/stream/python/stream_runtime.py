"""Response streaming from the managed Python runtime, which has none: one loop, one file.

Takes the place of the runtime's own loop by way of AWS_LAMBDA_EXEC_WRAPPER. A handler answers with
an object that has `status`, `headers` and `frames` (an iterator of bytes), or with a proxy
response. Delete this layer when Python streams natively.

Wire: "Response streaming" of Lambda's custom runtime guide (docs.aws.amazon.com/lambda), and for
what stands in front of the body "Response transfer mode" of API Gateway's developer guide: JSON of
status and headers, eight NULs, the body.
"""

from __future__ import annotations

import base64
import http.client
import importlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any

VERSION = "2018-06-01"
FORMAT = "application/vnd.awslambda.http-integration-response"
DELIMITER = b"\0" * 8
ERROR_TYPE, ERROR_BODY = "Lambda-Runtime-Function-Error-Type", "Lambda-Runtime-Function-Error-Body"

Handler = Callable[[dict[str, Any], "Context"], Any]


@dataclass(frozen=True)
class Context:
    """What a handler may ask of its invocation; names as the managed runtime has them."""

    aws_request_id: str
    invoked_function_arn: str
    deadline_ms: int
    function_name: str
    function_version: str
    memory_limit_in_mb: str
    log_group_name: str
    log_stream_name: str

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until Lambda ends this invocation; never negative."""
        return max(0, self.deadline_ms - int(time.time() * 1000))


class RuntimeApi:
    """The Lambda Runtime API on one connection per call: a broken one must not outlive its call."""

    def __init__(self, address: str) -> None:
        self._address = address

    def next(self) -> tuple[dict[str, Any], Mapping[str, str]]:
        """The next event and its headers; waits for it without limit."""
        connection = http.client.HTTPConnection(self._address)
        connection.request("GET", f"/{VERSION}/runtime/invocation/next")
        response = connection.getresponse()
        body, headers = response.read(), {k.lower(): v for k, v in response.getheaders()}
        connection.close()
        return json.loads(body), headers

    def report(self, path: str, error: BaseException) -> None:
        """An error before any answer has begun; its text stays in the log."""
        document = json.dumps({"errorType": type(error).__name__, "errorMessage": ""})
        headers = {"Content-Type": "application/json", ERROR_TYPE: type(error).__name__}
        connection = http.client.HTTPConnection(self._address)
        connection.request("POST", f"/{VERSION}/runtime/{path}", document, headers)
        connection.getresponse().read()
        connection.close()

    def stream(self, request_id: str, prelude: bytes, frames: Iterator[bytes]) -> None:
        """Send prelude and frames as they come; a failure in between goes into the trailers."""
        with closing(http.client.HTTPConnection(self._address)) as connection:
            self._send(connection, request_id, prelude, frames)

    def _send(
        self,
        connection: http.client.HTTPConnection,
        request_id: str,
        prelude: bytes,
        frames: Iterator[bytes],
    ) -> None:
        trailers = b""
        try:
            connection.putrequest("POST", f"/{VERSION}/runtime/invocation/{request_id}/response")
            connection.putheader("Content-Type", FORMAT)
            connection.putheader("Lambda-Runtime-Function-Response-Mode", "streaming")
            connection.putheader("Transfer-Encoding", "chunked")
            connection.putheader("Trailer", f"{ERROR_TYPE}, {ERROR_BODY}")
            connection.endheaders()
            connection.send(_chunk(prelude))
            while (frame := _next(frames)) is not None:
                if isinstance(frame, Exception):
                    trailers = _trailers(frame)
                    break
                if frame:  # an empty chunk would end the body
                    connection.send(_chunk(frame))
        finally:
            close = getattr(frames, "close", None)
            if close is not None:
                with suppress(Exception):
                    close()
        connection.send(b"0\r\n" + trailers + b"\r\n")
        connection.getresponse().read()


def _next(frames: Iterator[bytes]) -> bytes | Exception | None:
    """The next frame, why there is none, or None at the end."""
    try:
        return next(frames, None)
    except Exception as error:
        return error


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def _trailers(error: Exception) -> bytes:
    name = type(error).__name__
    document = json.dumps({"errorType": name, "errorMessage": ""}).encode()
    body = base64.b64encode(document).decode()
    return f"{ERROR_TYPE}: {name}\r\n{ERROR_BODY}: {body}\r\n".encode()


def parts(answer: Any) -> tuple[bytes, Iterator[bytes]]:
    """Prelude and frames of a streamed answer, or of a proxy response."""
    if not isinstance(answer, Mapping):
        return _prelude(answer.status, {k: [v] for k, v in answer.headers.items()}), answer.frames
    body = answer.get("body") or ""
    data = base64.b64decode(body) if answer.get("isBase64Encoded") else body.encode()
    single = {name: [value] for name, value in (answer.get("headers") or {}).items()}
    headers = {**single, **(answer.get("multiValueHeaders") or {})}
    return _prelude(answer.get("statusCode", 200), headers), iter((data,))


def _prelude(status: int, headers: Mapping[str, list[str]]) -> bytes:
    document = {"statusCode": status, "multiValueHeaders": headers}
    return json.dumps(document).encode() + DELIMITER


def load(name: str) -> Handler:
    """The handler `package.module.attribute`."""
    module, _, attribute = name.replace("/", ".").rpartition(".")
    handler: Handler = getattr(importlib.import_module(module), attribute)
    return handler


def context_of(headers: Mapping[str, str], environment: Mapping[str, str]) -> Context:
    """The invocation's context."""
    return Context(
        aws_request_id=headers["lambda-runtime-aws-request-id"],
        invoked_function_arn=headers.get("lambda-runtime-invoked-function-arn", ""),
        deadline_ms=int(headers["lambda-runtime-deadline-ms"]),
        function_name=environment.get("AWS_LAMBDA_FUNCTION_NAME", ""),
        function_version=environment.get("AWS_LAMBDA_FUNCTION_VERSION", ""),
        memory_limit_in_mb=environment.get("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", ""),
        log_group_name=environment.get("AWS_LAMBDA_LOG_GROUP_NAME", ""),
        log_stream_name=environment.get("AWS_LAMBDA_LOG_STREAM_NAME", ""),
    )


def serve(api: RuntimeApi, handler: Handler) -> None:
    """One invocation."""
    event, headers = api.next()
    os.environ["_X_AMZN_TRACE_ID"] = headers.get("lambda-runtime-trace-id", "")
    context = context_of(headers, os.environ)
    try:
        prelude, frames = parts(handler(event, context))
    except Exception as error:
        api.report(f"invocation/{context.aws_request_id}/error", error)
        return
    try:
        api.stream(context.aws_request_id, prelude, frames)
    except OSError as error:  # the Runtime API went away in the middle; the next event may come
        sys.stderr.write(f"stream ended: {type(error).__name__}\n")


def main() -> None:
    """Load the handler, then serve for ever."""
    environment = os.environ
    for place in (environment.get("LAMBDA_TASK_ROOT", ""), "/opt/python", "/var/runtime"):
        if place and place not in sys.path:
            sys.path.append(place)
    api = RuntimeApi(environment["AWS_LAMBDA_RUNTIME_API"])
    try:
        handler = load(environment["_HANDLER"])
    except Exception as error:
        api.report("init/error", error)
        raise SystemExit(1) from error
    while True:
        serve(api, handler)


if __name__ == "__main__":
    main()
