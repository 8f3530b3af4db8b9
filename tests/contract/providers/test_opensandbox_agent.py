"""Commands and files through the OpenSandbox adapter: what is sent, and what may go wrong."""

from __future__ import annotations

import json
import time
from typing import Any

import httpx
import pytest

from adapters import providers
from adapters.providers.opensandbox import commands
from adapters.providers.opensandbox.provider import OpenSandbox
from sandbox_router.model import failure as fail
from sandbox_router.model.secret import Secret
from sandbox_router.ports import Command, Exit, Output
from tests.contract.providers import contents
from tests.contract.providers.opensandbox_fake import (
    GONE,
    KEY,
    PROXY,
    REF,
    Fake,
    error,
    events,
    log,
    ok,
    started,
    status,
)
from tests.contract.providers.peer import answer, peer

RUNNING = status(running=True)
OK, FORGOTTEN = httpx.Response(200), error(404, "INVALID_REQUEST_BODY")
COMMAND = Command(shell="x", timeout_seconds=5)


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(commands, "LONGEST_PAUSE", 0.001)


def ran(fake: Fake, command: Command = COMMAND) -> list[Output | Exit]:
    return list(fake.account.run(REF, command))


def test_a_command_is_started_once_and_its_log_is_read_to_the_end() -> None:
    fake = Fake(started(), RUNNING, log(b"\xff\0", 2), status(exit_code=0), log(b"e", 3))
    command = Command(shell="echo", cwd="/w", env={"V": Secret("1")}, timeout_seconds=2.5)
    assert ran(fake, command) == [Output("stdout", b"\xff\0"), Output("stdout", b"e"), Exit(0)]
    assert fake.asked == [
        f"POST {PROXY}/command",
        f"GET {PROXY}/command/status/c0ffee",
        f"GET {PROXY}/command/c0ffee/logs?cursor=0",
        f"GET {PROXY}/command/status/c0ffee",
        f"GET {PROXY}/command/c0ffee/logs?cursor=2",
    ]
    assert json.loads(fake.sent[0].content) == {
        "command": "echo",
        "background": True,
        "timeout": 2500,
        "envs": {"V": "1"},
        "cwd": "/w",
    }
    assert {r.headers["open-sandbox-api-key"] for r in fake.sent} == {KEY}


def test_words_are_quoted_for_the_shell_that_execd_always_runs() -> None:
    fake = Fake(started(), status(exit_code=0), log(b"", 0))
    ran(fake, Command(argv=("printf", "$HOME `id`", "'")))
    text = json.loads(fake.sent[0].content)["command"]
    assert text == "exec printf '$HOME `id`' ''\"'\"''"


@pytest.mark.parametrize("prefix", ["", "data: ", "data:"])
def test_events_are_read_with_and_without_the_fields_name(prefix: str) -> None:
    ping = {"type": "ping", "text": "pong"}
    stream = events(
        ping, {"type": "init", "text": "c0ffee"}, {"type": "execution_complete"}, prefix=prefix
    )
    assert ran(Fake(stream, status(exit_code=3), log(b"", 0))) == [Exit(3)]


@pytest.mark.parametrize(
    ("fields", "end"),
    [
        ({"exit_code": 0}, Exit(0)),
        ({"exit_code": 255, "error": "exit status 255"}, Exit(255)),
        ({"exit_code": -1, "error": "signal: killed"}, Exit(None, "SIGKILL")),
        ({"exit_code": -1, "error": "signal: terminated"}, Exit(None, "SIGTERM")),
        (
            {"exit_code": -1, "error": "signal: segmentation fault (core dumped)"},
            Exit(None, "SIGSEGV"),
        ),
        ({"exit_code": -1, "error": "signal: signal 34"}, Exit(None)),
        ({"exit_code": -1, "error": "who knows"}, Exit(None)),
        ({"exit_code": None}, Exit(None)),
        ({}, Exit(None)),
    ],
    ids=str,
)
def test_an_exit_is_what_execd_says_and_never_invented(fields: dict[str, Any], end: Exit) -> None:
    assert ran(Fake(started(), status(**fields), log(b"", 0))) == [end]


@pytest.mark.parametrize("code", [True, "0", 1.5, []])
def test_an_exit_code_that_is_none_is_not_believed(code: Any) -> None:
    with pytest.raises(fail.ProtocolBroken):
        ran(Fake(started(), status(exit_code=code), log(b"", 0), OK))


def test_a_signal_after_the_time_is_the_timeout() -> None:
    killed = status(exit_code=-1, error="signal: killed")
    fake = Fake(started(), killed, log(b"", 0))
    assert ran(fake, Command(shell="x", timeout_seconds=0)) == [Exit(None, timed_out=True)]


def test_what_execd_does_not_end_in_time_is_interrupted() -> None:
    def reply(request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            return started()
        return log(b"", 0) if request.url.path.endswith("/logs") else RUNNING

    fake = Fake(reply)
    began = time.monotonic()
    assert ran(fake, Command(shell="x", timeout_seconds=0.1)) == [Exit(None, timed_out=True)]
    assert 0.4 < time.monotonic() - began < 1.5
    assert fake.asked[-1] == f"DELETE {PROXY}/command?id=c0ffee"


def test_leaving_early_interrupts_the_command_once() -> None:
    fake = Fake(started(), RUNNING, log(b"out", 3), OK)
    running = fake.account.run(REF, COMMAND)
    assert next(running) == Output("stdout", b"out")
    running.close()  # type: ignore[attr-defined]
    assert fake.asked[-1] == f"DELETE {PROXY}/command?id=c0ffee"
    assert len(fake.sent) == 4


def test_input_is_refused_before_anything_is_sent() -> None:
    fake = Fake(started())
    with pytest.raises(fail.PoolUnsupported):
        ran(fake, Command(shell="cat", stdin=b""))
    assert fake.sent == []


@pytest.mark.parametrize("path", ["/w/$HOME", "/w/${X}", "/$1", "/a$$b", "~", "~/x"])
def test_a_path_that_execd_would_read_otherwise_is_refused(path: str) -> None:
    fake = Fake(started())
    account = fake.account
    calls: tuple[Any, ...] = (
        lambda: ran(fake, Command(shell="x", cwd=path)),
        lambda: contents.read(account, REF, path, 9),
        lambda: contents.write(account, REF, path, b""),
        lambda: account.move_file(REF, path, "/x"),
        lambda: account.move_file(REF, "/x", path),
        lambda: account.remove_file(REF, path),
        lambda: account.list_directory(REF, path),
    )
    for call in calls:
        with pytest.raises(fail.Rejected):
            call()
    assert fake.sent == []


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (GONE, fail.Gone),
        (error(400, "INVALID_REQUEST_BODY"), fail.Rejected),
        (error(502, "BACKEND_CONNECTION_FAILED"), fail.Outage),
        (error(502, "BACKEND_RESPONSE_FAILED"), fail.Unknown),
        (error(504, "BACKEND_TIMEOUT"), fail.Unknown),
        (error(500, "RUNTIME_ERROR"), fail.Unknown),
        (error(401, "INVALID_API_KEY"), fail.BrokenPool),
        (error(401, "MISSING_OR_INVALID_SECURE_ACCESS"), fail.Permission),
        (ok({"error": "Unauthorized"}, 401), fail.Permission),
        (error(404, "NOT_SUPPORTED"), fail.PoolUnsupported),
        (events(), fail.Unknown),
        (events({"type": "ping"}), fail.Unknown),
        (events({"type": "init", "text": "../x"}), fail.ProtocolBroken),
        (events({"type": "init"}), fail.ProtocolBroken),
        (events({"type": "error", "error": {"evalue": "no shell"}}), fail.Rejected),
        (events({"type": "init", "text": "a"}, {"code": "RUNTIME_ERROR"}), fail.Rejected),
        (httpx.Response(200, content=b"{broken\n\n"), fail.ProtocolBroken),
        (httpx.Response(200, content=b"x" * 1_000_001), fail.ProtocolBroken),
    ],
    ids=lambda value: value.text[:50] if isinstance(value, httpx.Response) else value.__name__,
)
def test_a_start_that_goes_wrong_has_its_class(
    answer: httpx.Response, kind: type[fail.Failure]
) -> None:
    fake = Fake(answer)
    with pytest.raises(fail.Failure) as raised:
        ran(fake)
    assert type(raised.value) is kind
    assert len(fake.sent) == 1  # it is not started again


def test_a_start_that_is_cut_after_its_id_is_followed() -> None:
    init = json.dumps({"type": "init", "text": "c0ffee"}).encode() + b"\n\n"
    cut = b"HTTP/1.1 200 X\r\ncontent-length: 999\r\n\r\n" + init

    def play(connection: Any, over: Any) -> None:
        connection.sendall(replies.pop(0))

    ended = answer(200, b'{"running": false, "exit_code": 5}')
    replies = [cut, ended, answer(200, b"out", f"{commands.CURSOR}: 3")]
    with peer(play) as there:
        account = OpenSandbox(providers.profile("opensandbox"), Secret(KEY), there.url)
        assert list(account.run(REF, COMMAND)) == [Output("stdout", b"out"), Exit(5)]
        account.close()


def test_reading_is_repeated_where_it_fails_and_nothing_was_read() -> None:
    busy = error(429, "TOO_MANY_REQUESTS")
    fake = Fake(started(), error(502, "X"), RUNNING, busy, status(exit_code=0), log(b"a", 1))
    assert ran(fake) == [Output("stdout", b"a"), Exit(0)]


def test_a_command_execd_has_not_noted_yet_is_waited_for() -> None:
    fake = Fake(started(), FORGOTTEN, FORGOTTEN, status(exit_code=0), log(b"", 0))
    assert ran(fake) == [Exit(0)]


@pytest.mark.parametrize(
    ("replies", "kind"),
    [
        ((error(500, "X"),), fail.Unknown),
        ((FORGOTTEN,), fail.Unknown),
        ((GONE,), fail.Gone),
        ((ok([]),), fail.ProtocolBroken),
        ((RUNNING, log(b"", "x"), OK), fail.ProtocolBroken),
        ((RUNNING, httpx.Response(200), OK), fail.ProtocolBroken),
    ],
    ids=["trouble", "forgotten", "gone", "no-object", "no-number", "no-cursor"],
)
def test_a_command_that_is_lost_on_the_way_is_interrupted(
    replies: tuple[httpx.Response, ...], kind: type[fail.Failure], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "NOTICED_SECONDS", 0.01)
    fake = Fake(started(), *replies)
    with pytest.raises(fail.Failure) as raised:
        ran(fake)
    assert type(raised.value) is kind
    assert fake.asked[-1] == f"DELETE {PROXY}/command?id=c0ffee"


def test_a_file_is_read_whole_or_not_at_all() -> None:
    fake = Fake(httpx.Response(200, content=b"\0\xff"))
    assert contents.read(fake.account, REF, "/a b/ü&=%25#?", 2) == b"\0\xff"
    path = "%2Fa%20b%2F%C3%BC%26%3D%2525%23%3F"
    assert fake.asked == [f"GET {PROXY}/files/download?path={path}"]
    with pytest.raises(fail.TooLarge):
        contents.read(Fake(httpx.Response(200, content=b"123")).account, REF, "/x", 2)
    with pytest.raises(fail.FileMissing):
        contents.read(Fake(error(404, "FILE_NOT_FOUND")).account, REF, "/x", 2)
    with pytest.raises(fail.Rejected):
        contents.read(Fake(error(500, "RUNTIME_ERROR")).account, REF, "/tmp", 2)


def test_an_upload_is_a_form_whose_content_cannot_end_it() -> None:
    data = b"\r\n--x\r\nContent-Disposition: form-data\r\n\r\n\0\xff"
    fake = Fake(httpx.Response(200))
    contents.write(fake.account, REF, '/a/"\n.bin', data)
    (request,) = fake.sent
    assert request.headers["content-length"] == str(len(request.content))
    mark = request.headers["content-type"].partition("boundary=")[2]
    assert mark.encode() not in data
    empty, metadata, content, end = request.content.split(f"--{mark}".encode())
    assert (empty, end) == (b"", b"--\r\n")
    head, _, told = metadata.partition(b"\r\n\r\n")
    assert b'name="metadata"; filename="metadata"' in head
    assert json.loads(told) == {"path": '/a/"\n.bin'}
    assert content.partition(b"\r\n\r\n")[2] == data + b"\r\n"


def test_a_write_that_fails_in_the_middle_is_not_taken_for_nothing() -> None:
    with pytest.raises(fail.Unknown):
        contents.write(Fake(error(500, "RUNTIME_ERROR")).account, REF, "/x", b"")


def entry(path: str, kind: str | None = "file", **changes: Any) -> dict[str, Any]:
    moment = "2026-11-29T16:00:00.123456789Z"
    told = {"path": path, "size": 1, "modified_at": moment, "created_at": moment, "mode": 644}
    return {**told, **({} if kind is None else {"type": kind}), **changes}


@pytest.mark.parametrize(
    ("kind", "operation"),
    [
        ("file", "/files"),
        ("other", "/files"),
        (None, "/files"),
        ("directory", "/directories"),
        ("symlink", "/directories"),
    ],
)
def test_a_path_is_looked_at_before_it_is_removed(kind: str | None, operation: str) -> None:
    fake = Fake(ok({"/x": entry("/x", kind)}), OK)
    fake.account.remove_file(REF, "/x")
    assert fake.asked == [
        f"GET {PROXY}/files/info?path=%2Fx",
        f"DELETE {PROXY}{operation}?path=%2Fx",
    ]
    with pytest.raises(fail.FileMissing):
        Fake(error(404, "FILE_NOT_FOUND")).account.remove_file(REF, "/x")


def test_a_list_is_sorted_by_name_and_read_as_it_is() -> None:
    fake = Fake(ok([entry("/d/b", "symlink"), entry("/d/a", "directory"), entry("/d/c", "pipe")]))
    found = fake.account.list_directory(REF, "/d")
    assert [(e.name, e.kind) for e in found] == [
        ("a", "directory"),
        ("b", "symlink"),
        ("c", "other"),
    ]
    assert (found[0].path, found[0].size, found[0].modified_at) == ("/d/a", 1, 1795968000123)


@pytest.mark.parametrize(
    "body",
    [
        {},
        [1],
        [entry("")],
        [entry("/x", size=-1)],
        [entry("/x", size="1")],
        [entry("/x", size=True)],
        [entry("/x", modified_at="x")],
    ],
    ids=str,
)
def test_a_list_of_something_else_is_broken(body: Any) -> None:
    with pytest.raises(fail.ProtocolBroken):
        Fake(ok(body)).account.list_directory(REF, "/d")
    if isinstance(body, list):
        wrong = Fake(ok(dict(enumerate(body)) if body else {}))
        with pytest.raises(fail.ProtocolBroken):
            wrong.account.remove_file(REF, "/d")


def test_the_answer_to_a_look_must_hold_exactly_what_was_asked_for() -> None:
    for body in ({}, {"/x": entry("/x"), "/y": entry("/y")}):
        with pytest.raises(fail.ProtocolBroken):
            Fake(ok(body)).account.remove_file(REF, "/x")
