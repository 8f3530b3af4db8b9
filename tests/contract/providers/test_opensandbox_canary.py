"""No secret, no path, no command and no word of the server reaches a log or an exception."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from typing import Any

import pytest

from adapters import providers
from adapters.providers.opensandbox import commands, provider
from adapters.providers.opensandbox.provider import OpenSandbox
from sandbox_router.model import failure as fail
from sandbox_router.model.secret import Secret
from sandbox_router.ports import Command
from tests.contract.providers import contents
from tests.contract.providers.opensandbox_fake import ID, ORDER, REF
from tests.contract.providers.peer import answer, peer, says

CANARY = "CANARY-7f3a"
CALLS: list[Callable[[OpenSandbox], Any]] = [
    lambda a: a.verify(),
    lambda a: a.create(ORDER, timeout=2),
    lambda a: a.find({"a": "b"}),
    lambda a: a.get(ID),
    lambda a: a.destroy(ID),
    lambda a: a.instances(None),
    lambda a: a.pause(ID, "disk"),
    lambda a: a.resume(ID, 60),
    lambda a: a.extend(ID, 60),
    lambda a: list(a.run(REF, Command(shell=CANARY, env={"A": Secret(CANARY)}))),
    lambda a: contents.read(a, REF, f"/{CANARY}", 9),
    lambda a: contents.write(a, REF, f"/{CANARY}", CANARY.encode()),
    lambda a: a.move_file(REF, f"/{CANARY}", f"/{CANARY}-2"),
    lambda a: a.remove_file(REF, f"/{CANARY}"),
    lambda a: a.list_directory(REF, f"/{CANARY}"),
    lambda a: a.open_port(REF, 80),
    lambda a: a.capture(REF.instance_id, CANARY, "disk", timeout=2),
    lambda a: a.find_capture(REF.instance_id, CANARY),
    lambda a: a.get_capture("snap-1"),
    lambda a: a.destroy_capture("snap-1"),
    lambda a: a.captures(None),
]


@pytest.mark.parametrize("status", [200, 202, 302, 400, 401, 403, 404, 409, 429, 500, 503])
def test_no_secret_of_any_call_reaches_a_log_or_an_exception(
    status: int, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setattr(commands, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(provider, "POLL_SECONDS", 0.001)
    echo = b'{"code": "CANARY-code", "message": "CANARY-said"}'
    with peer(says(answer(status, echo, "x-echo: CANARY-echo", "location: /CANARY"))) as there:
        account = OpenSandbox(providers.profile("opensandbox"), Secret("CANARY-key"), there.url)
        shown = repr((account, account._agents)) + caplog.text
        for call in CALLS:
            try:
                shown += repr(call(account))
            except fail.Failure as failure:
                shown += "".join(traceback.format_exception(failure))
                shown += repr((vars(failure), failure.__cause__))
        assert "CANARY-" not in shown.replace(CANARY.encode().hex(), "") + caplog.text
        assert any(b"CANARY-key" in request for request in there.requests)
        account.close()
