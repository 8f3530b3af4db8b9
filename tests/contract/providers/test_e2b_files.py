"""Files and ports through the E2B adapter: a path is data, a port is private."""

from __future__ import annotations

import json
import time

import httpx
import pytest

from sandbox_router.model import failure as fail
from sandbox_router.model.secret import Secret
from sandbox_router.ports import Ref
from tests.contract.providers import contents
from tests.contract.providers.e2b_fake import DETAIL, MADE, REF, TRAFFIC, Fake, ok

PATHS = [
    "/a",
    "relative",
    "/a b",
    "/..",
    "/../../keys",
    "/a/../b",
    "//a",
    "/./a",
    "/%2e%2e/a",
    "/%252e",
    "/a%2fb",
    "/a\\b",
    "/a\x00b",
    "/a?x=1&path=/b",
    "/a#b",
    "/a;b",
    "/a+b",
    "/a&username=root",
    "/ü/日本/🙂",
    "/a\nb",
    "/a\r\nX: y",
    "/trailing.",
    "/ ",
    "",
    "/" + "a" * 4000,
    "http://evil.org/",
    "@evil.org",
]


@pytest.mark.parametrize("path", PATHS)
def test_a_path_arrives_as_it_was_and_never_at_another_endpoint(path: str) -> None:
    fake = Fake(ok([]))
    contents.write(fake.account, REF, path, b"")
    contents.read(fake.account, REF, path, 10)
    for request in fake.sent:
        assert request.url.raw_path.split(b"?")[0] == b"/files"
        assert request.url.params.multi_items() == [("path", path)]
    fake = Fake(ok({}))
    fake.account.remove_file(REF, path)
    fake.account.list_directory(REF, path)
    names = [r.url.path.rpartition(".")[2] for r in fake.sent]
    assert names == ["Filesystem/Stat", "Filesystem/Remove", "Filesystem/ListDir"]
    assert all(json.loads(r.content)["path"] == path for r in fake.sent)


@pytest.mark.parametrize(("version", "raw"), [("0.5.7", True), ("0.5.6", False), (None, True)])
def test_an_upload_takes_the_form_the_agent_knows(version: str | None, raw: bool) -> None:
    fake = Fake(ok([]))
    known = {} if version is None else {"version": Secret(version)}
    data = b"\x00--\r\n"
    contents.write(fake.account, Ref(REF.instance_id, {**REF.access, **known}), "/x", data)
    (request,) = fake.sent
    assert request.headers["content-length"] == str(len(request.content))
    assert "transfer-encoding" not in request.headers
    if raw:
        assert request.headers["content-type"] == "application/octet-stream"
        assert request.content == data
    else:
        boundary = request.headers["content-type"].partition("boundary=")[2].encode()
        head, _, body = request.content.partition(b"\r\n\r\n")
        assert head.startswith(b"--" + boundary)
        assert body == data + b"\r\n--" + boundary + b"--\r\n"


@pytest.mark.parametrize(
    ("stat", "moves"),
    [
        (ok({"entry": {"name": "d", "path": "/d", "type": "FILE_TYPE_DIRECTORY"}}), False),
        (ok({"entry": {"name": "d", "path": "/d", "type": "FILE_TYPE_FILE"}}), True),
        (ok({"code": "not_found"}, 404), True),
    ],
    ids=["directory", "file", "nothing"],
)
def test_a_file_takes_any_name_but_a_directorys(stat: httpx.Response, moves: bool) -> None:
    fake = Fake(stat, ok({"entry": {}}))
    if moves:
        fake.account.move_file(REF, "/a b", "/d")
        assert json.loads(fake.sent[-1].content) == {"source": "/a b", "destination": "/d"}
    else:
        with pytest.raises(fail.Rejected):
            fake.account.move_file(REF, "/a b", "/d")
    names = [request.url.path.rpartition("/")[2] for request in fake.sent]
    assert names == ["Stat", "Move"][: 1 + moves]


def test_a_port_is_told_with_its_token_and_without_a_call() -> None:
    fake = Fake(ok({}))
    there = fake.account.open_port(REF, 8080)
    assert there.url == f"https://8080-{REF.instance_id}.e2b.app"
    assert dict(there.headers) == {"e2b-traffic-access-token": TRAFFIC}
    assert there.visibility == "private"
    assert fake.sent == []


def test_the_token_of_ports_is_learnt_without_moving_the_end() -> None:
    soon = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 100))
    fake = Fake(ok({**DETAIL, "endAt": soon}), ok(MADE))
    there = fake.account.open_port(Ref(REF.instance_id, {}), 8080)
    assert dict(there.headers) == {"e2b-traffic-access-token": TRAFFIC}
    assert 95 <= json.loads(fake.sent[1].content)["timeout"] <= 101
    paused = Fake(ok({**DETAIL, "state": "paused"}))
    with pytest.raises(fail.Conflicted):
        paused.account.open_port(Ref(REF.instance_id, {}), 8080)
    assert len(paused.sent) == 1  # connecting would have resumed it
