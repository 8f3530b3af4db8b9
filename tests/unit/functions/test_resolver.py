"""Calls of one process run side by side, the very first ones too."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

from functions.edge.resolver import Resolver

EVENT: dict[str, Any] = {"httpMethod": "GET", "path": "/a", "requestContext": {}, "headers": {}}


def test_a_first_call_that_takes_long_holds_up_no_other() -> None:
    app, both = Resolver(), threading.Barrier(2, timeout=5)

    @app.get("/a")
    def meet() -> dict[str, bool]:
        both.wait()  # breaks when the other one is not let in
        return {"met": True}

    with ThreadPoolExecutor(2) as threads:
        calls = [threads.submit(copy_context().run, app.resolve, EVENT, None) for _ in range(2)]
    assert [call.result()["statusCode"] for call in calls] == [200, 200]
