"""The streaming loop against a Runtime API: what Lambda would see."""

from __future__ import annotations

import base64
import importlib.util
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.unit.stream.runtime_api import FakeRuntimeApi, Post

FILE = Path(__file__).parents[3] / "layers/stream/python/stream_runtime.py"
BOOTSTRAP = Path(__file__).parents[3] / "layers/stream/bin/stream-bootstrap"


def _module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("stream_runtime", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["stream_runtime"] = module
    spec.loader.exec_module(module)
    return module


runtime = _module()


@dataclass
class Streamed:
    """An answer as `functions.edge.stream` makes it."""

    status: int
    headers: dict[str, str]
    frames: Iterator[bytes]


@pytest.fixture
def api() -> Iterator[FakeRuntimeApi]:
    fake = FakeRuntimeApi()
    yield fake
    fake.close()


def _served(api: FakeRuntimeApi, handler: Any) -> Post:
    api.events.put({"httpMethod": "POST"})
    runtime.serve(runtime.RuntimeApi(api.address), handler)
    return api.posts.get(timeout=5)


def test_frames_leave_one_by_one_behind_status_and_headers(api: FakeRuntimeApi) -> None:
    gates = [threading.Event(), threading.Event()]

    def frames() -> Iterator[bytes]:
        yield b"one"
        assert gates[0].wait(5)  # the first frame must be out before the second is made
        yield b"two"

    def handler(event: dict[str, Any], context: Any) -> Streamed:
        assert 0 < context.get_remaining_time_in_millis() <= 5000
        assert context.aws_request_id == "req-1"
        return Streamed(200, {"Content-Type": "text/event-stream"}, frames())

    threading.Timer(0.2, gates[0].set).start()
    post = _served(api, handler)
    head, _, body = post.body.partition(b"\0" * 8)
    assert json.loads(head) == {
        "statusCode": 200,
        "multiValueHeaders": {"Content-Type": ["text/event-stream"]},
    }
    assert body == b"onetwo"
    assert post.at[2] - post.at[1] >= 0.1
    assert post.path.endswith("/runtime/invocation/req-1/response")
    assert post.headers["lambda-runtime-function-response-mode"] == "streaming"
    assert post.headers["content-type"] == "application/vnd.awslambda.http-integration-response"
    assert post.trailers == {}


def test_a_failure_in_the_middle_goes_into_the_trailers_without_its_text(
    api: FakeRuntimeApi,
) -> None:
    def frames() -> Iterator[bytes]:
        yield b"one"
        raise ValueError("CANARY-1")

    post = _served(api, lambda event, context: Streamed(200, {}, frames()))
    assert post.body.endswith(b"one")
    assert post.trailers["Lambda-Runtime-Function-Error-Type"] == "ValueError"
    body = json.loads(base64.b64decode(post.trailers["Lambda-Runtime-Function-Error-Body"]))
    assert body == {"errorType": "ValueError", "errorMessage": ""}


def test_the_frames_are_closed_when_they_fail_or_end(api: FakeRuntimeApi) -> None:
    closed = []

    def frames() -> Iterator[bytes]:
        try:
            yield b"one"
            yield b""
            yield b"two"
        finally:
            closed.append(True)

    post = _served(api, lambda event, context: Streamed(200, {}, frames()))
    assert post.body.endswith(b"onetwo")
    assert closed == [True]


def test_a_proxy_response_is_streamed_as_one_frame(api: FakeRuntimeApi) -> None:
    answer = {
        "statusCode": 409,
        "headers": {"A": "1"},
        "multiValueHeaders": {"B": ["2", "3"]},
        "body": base64.b64encode(b"\xff\x00").decode(),
        "isBase64Encoded": True,
    }
    head, _, body = _served(api, lambda event, context: answer).body.partition(b"\0" * 8)
    assert json.loads(head)["statusCode"] == 409
    assert json.loads(head)["multiValueHeaders"] == {"A": ["1"], "B": ["2", "3"]}
    assert body == b"\xff\x00"


def test_a_handler_that_raises_reports_an_error_without_its_text(api: FakeRuntimeApi) -> None:
    def handler(event: dict[str, Any], context: Any) -> Any:
        raise KeyError("CANARY-2")

    post = _served(api, handler)
    assert post.path.endswith("/runtime/invocation/req-1/error")
    assert json.loads(post.body) == {"errorType": "KeyError", "errorMessage": ""}


def _process(api: FakeRuntimeApi, tmp_path: Path, handler: str) -> subprocess.Popen[bytes]:
    environment = {
        "AWS_LAMBDA_RUNTIME_API": api.address,
        "LAMBDA_TASK_ROOT": str(tmp_path),
        "_HANDLER": handler,
        "PATH": os.environ["PATH"],
    }
    return subprocess.Popen([sys.executable, str(FILE)], env=environment, stderr=subprocess.PIPE)


def test_a_handler_that_cannot_be_loaded_is_an_init_error(
    api: FakeRuntimeApi, tmp_path: Path
) -> None:
    process = _process(api, tmp_path, "nowhere.handler")
    post = api.posts.get(timeout=10)
    assert post.path == "/2018-06-01/runtime/init/error"
    assert post.headers["lambda-runtime-function-error-type"] == "ModuleNotFoundError"
    process.communicate(timeout=10)
    assert process.returncode == 1


def test_the_process_serves_one_event_after_the_other(api: FakeRuntimeApi, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(
        "class Answer:\n"
        "    status, headers = 200, {}\n"
        "    def __init__(self, n): self.frames = iter([str(n).encode()])\n"
        "def handler(event, context): return Answer(event['n'])\n"
    )
    process = _process(api, tmp_path, "app.handler")
    try:
        for n in (1, 2):
            api.events.put({"n": n})
            assert api.posts.get(timeout=10).body.endswith(b"\0" + str(n).encode())
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=10)


def test_the_wrapper_runs_the_loop_with_the_interpreter_it_is_given() -> None:
    text = BOOTSTRAP.read_text()
    assert text.startswith("#!/bin/sh\n")
    assert text.rstrip().endswith('exec "$1" /opt/python/stream_runtime.py')
    assert os.access(BOOTSTRAP, os.X_OK)
