"""No secret, no path, no command and no word of the provider reaches a log or an exception."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from typing import Any

import pytest

from adapters import providers
from adapters.providers.e2b.provider import E2B
from sandbox_router.model import failure as fail
from sandbox_router.model.secret import Secret
from sandbox_router.ports import Command
from tests.contract.providers import contents
from tests.contract.providers.e2b_fake import ORDER, REF
from tests.contract.providers.peer import answer, peer, says

CANARY = "CANARY-7f3a"
CALLS: list[Callable[[E2B], Any]] = [
    lambda a: a.verify(),
    lambda a: a.create(ORDER, timeout=2),
    lambda a: a.find({"a": "b"}),
    lambda a: a.get(REF.instance_id),
    lambda a: a.destroy(REF.instance_id),
    lambda a: a.instances(None),
    lambda a: a.pause(REF.instance_id, "memory"),
    lambda a: a.resume(REF.instance_id, 60),
    lambda a: a.extend(REF.instance_id, 60),
    lambda a: list(a.run(REF, Command(shell=CANARY, env={"A": Secret(CANARY)}))),
    lambda a: contents.read(a, REF, f"/{CANARY}", 9),
    lambda a: contents.write(a, REF, f"/{CANARY}", CANARY.encode()),
    lambda a: a.move_file(REF, f"/{CANARY}", f"/{CANARY}-2"),
    lambda a: a.remove_file(REF, f"/{CANARY}"),
    lambda a: a.list_directory(REF, f"/{CANARY}"),
    lambda a: a.open_port(REF, 80),
    lambda a: a.capture(REF.instance_id, CANARY, "memory", timeout=2),
    lambda a: a.find_capture(REF.instance_id, CANARY),
    lambda a: a.get_capture("snap-1"),
    lambda a: a.destroy_capture("snap-1"),
    lambda a: a.captures(None),
]


@pytest.mark.parametrize("status", [200, 302, 400, 401, 403, 404, 409, 429, 500, 503])
def test_no_secret_of_any_call_reaches_a_log_or_an_exception(
    status: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    echo = b'{"code": 1, "message": "CANARY-said", "error_code": "CANARY-code"}'
    with peer(says(answer(status, echo, "x-echo: CANARY-echo", "location: /CANARY"))) as there:
        account = E2B(providers.profile("e2b"), Secret("CANARY-key"), there.url, f"{there.url}/s")
        shown = repr(account) + caplog.text
        for call in CALLS:
            try:
                shown += repr(call(account))
            except fail.Failure as failure:
                shown += "".join(traceback.format_exception(failure))
                shown += repr((vars(failure), failure.__cause__))
        assert "CANARY-" not in shown + caplog.text
        assert any(b"CANARY-key" in request for request in there.requests)
