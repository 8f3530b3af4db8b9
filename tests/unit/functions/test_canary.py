"""Nothing a client keeps secret shows in a log or an answer, not even at DEBUG."""

from __future__ import annotations

import base64
import io
import json
import logging
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from sandbox_router.model.failure import Unknown
from sandbox_router.model.secret import Secret
from sandbox_router.ports import Exit, Output
from tests.unit.functions.world import Got, World, call, on

MARKS = [f"CANARY-{n}-{'x7Qz' * 4}" for n in range(6)]
ENV, COMMAND, STDIN, FILE, KEY, ARG = MARKS


def forms(mark: str) -> list[str]:
    """How a mark could show, hidden a little or cut."""
    coded = base64.b64encode(mark.encode()).decode().rstrip("=")
    return [mark, mark[:12], coded[4:-4], quote(mark), mark[::-1], mark.encode().hex()]


@pytest.fixture
def quiet(
    logged: io.StringIO, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> Iterator[None]:
    """Whatever anybody logs or prints at DEBUG during the test has no mark."""
    with caplog.at_level(logging.DEBUG):
        yield
    shown = capsys.readouterr()
    assert logged.getvalue()
    found = [logged.getvalue(), shown.out, shown.err, caplog.text]
    for text in [*found, *(str(vars(record)) for record in caplog.records)]:
        for mark in MARKS:
            assert not [form for form in forms(mark) if form in text]


def clean(got: Got) -> None:
    for mark in MARKS:
        assert not [form for form in forms(mark) if form in got.text + str(got.headers)]


def test_a_whole_life_keeps_its_secrets(world: World, quiet: None) -> None:
    made = call(
        "create_sandbox",
        body={"env": {"TOKEN": ENV}},
        headers={"Authorization": f"Bearer {KEY}", "Idempotency-Key": "k"},
    )
    clean(made)
    sandbox_id = made.json["id"]
    world.first.events.extend([[Output("stdout", b"x"), Exit(0)], [Unknown()], [KeyError(ARG)]])
    for _ in range(3):
        body = {"argv": [COMMAND, ARG], "env": {"B": ENV}, "stdin": STDIN}
        clean(on("run_command", sandbox_id, body=body))
    clean(on("write_file", sandbox_id, query={"path": "/f"}, body=FILE.encode()))
    assert on("read_file", sandbox_id, query={"path": "/f"}).text == FILE
    clean(on("get_sandbox", sandbox_id))
    clean(call("list_sandboxes"))
    clean(on("destroy_sandbox", sandbox_id))


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("create_sandbox", {"env": {"A": ENV}, "size": ENV}),
        ("create_sandbox", {"env": {"A": [ENV]}, "image": f"{ENV} "}),
        ("create_sandbox", {"env": ENV, "provider": {"sort": ENV}}),
        ("create_sandbox", {"credentials": [{"value": ENV}]}),
        ("create_sandbox", f'{{"env": {{"A": "{ENV}"'),
        ("create_sandbox", f'{{"env": {{"A": "{ENV}", "A": "{ENV}"}}}}'),
        ("run_command", {"command": [COMMAND], "argv": COMMAND, "stdin": [STDIN]}),
        ("run_command", {"command": COMMAND, "argv": [ARG], "cwd": f"{STDIN}"}),
        ("run_command", {"command": COMMAND, "stdin": STDIN, "timeout_seconds": ARG}),
    ],
)
def test_what_is_refused_is_not_repeated(
    world: World, quiet: None, name: str, body: object
) -> None:
    path = {"id": world.created()} if name == "run_command" else {}
    got = call(name, path=path, body=body, headers={"Content-Type": "application/json"})
    assert got.status in (400, 422)
    clean(got)


def test_secrets_of_a_request_have_no_repr(world: World) -> None:
    from functions.edge.bodies import CommandBody, CreateBody

    create = CreateBody.model_validate({"env": {"A": ENV}})
    command = CommandBody.model_validate({"command": COMMAND, "stdin": STDIN, "env": {"A": ENV}})
    shown = "".join(map(repr, (create, create.to_cargo(), command, command.to_command())))
    assert not any(mark in shown for mark in MARKS)
    assert repr(Secret(KEY)) == "***"


def test_a_log_line_cannot_be_forged(world: World, logged: io.StringIO) -> None:
    forged = 'x\n{"level":"ERROR","message":"fake"}'
    call("create_sandbox", body={"image": forged, forged: 1}, headers={"Idempotency-Key": forged})
    call("list_sandboxes", query={forged: forged})
    lines = [json.loads(line) for line in logged.getvalue().splitlines()]
    assert len(lines) >= 2
    assert "fake" not in logged.getvalue()
