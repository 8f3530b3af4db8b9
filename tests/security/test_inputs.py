"""What a client writes stays data: a path in a sandbox, a header's value, a word in a log."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from http.client import HTTPResponse
from typing import Any

import pytest

from tests.security.target import Target

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("security")]
FILE = {"Content-Type": "application/octet-stream"}
ARRIVES = [
    *("/tmp/plain", "/tmp/a b", "/tmp/ünï", "/tmp/日本 🚀", "/tmp/.hidden", "/tmp/...", "/tmp/..a"),
    *("/tmp/a..", "/tmp/%2e%2e", "/tmp/%252e%252e%252fetc", "/tmp/a%2Fb", "/tmp/%00", "/tmp/a?b=c"),
    *("/tmp/a#b", "/tmp/a&username=root", "/tmp/a+b", "/tmp/a;b", "/tmp/a:b", "/tmp/a\\..\\b"),
    *("/tmp/'quoted'", '/tmp/"quoted"', "/tmp/$(id)", "/tmp/`id`", "/tmp/*", "/tmp/~", "/tmp/-rf"),
    *("/tmp/a|b", "/tmp/a\tb", "/tmp/http:", "/tmp/trailing.", "/tmp/{id}", "/tmp/new/way/down"),
]
REFUSED = [
    *(
        "",
        "relative",
        "..",
        "/..",
        "/../etc/passwd",
        "/tmp/../etc/passwd",
        "/tmp/..",
        "/tmp/a/../b",
    ),
    *("/", "//", "/.", "/tmp/a\0b", "/tmp/a\nb", "/tmp/a\r\nX-Evil: 1", "C:\\a", "/" + "a" * 5000),
]


@pytest.fixture(scope="module")
def box(target: Target) -> Iterator[str]:
    made = target.create(provider={"only": ["alpha"]}).json()["id"]
    yield made
    target.destroy(made)


@pytest.fixture(scope="module")
def third(target: Target) -> Iterator[str]:
    made = target.create(provider={"only": ["gamma"]}).json()["id"]
    yield made
    target.destroy(made)


@pytest.mark.parametrize("path", ARRIVES)
def test_a_path_arrives_byte_for_byte_and_at_no_other_endpoint(
    target: Target, box: str, path: str
) -> None:
    url, data = f"/v1/sandboxes/{box}/files", path.encode()
    last = target.last_call()
    put = target.api.put(url, params={"path": path}, content=data, headers=FILE)
    assert put.status_code == 204, put.text
    assert target.api.get(url, params={"path": path}).content == data
    assert {call["op"] for call in target.calls(last)} == {"files"}
    seen = {"argv": ["cat", "--", path]}
    ran = target.api.post(f"/v1/sandboxes/{box}/exec", json=seen).json()
    assert (ran["exit_code"], ran["stdout"]) == (0, path), ran
    folder = path.rpartition("/")[0]
    listed = target.api.get(f"/v1/sandboxes/{box}/directories", params={"path": folder}).json()
    assert path in [entry["path"] for entry in listed["data"]]
    assert target.api.delete(url, params={"path": path}).status_code == 204
    assert target.api.get(url, params={"path": path}).status_code == 404


@pytest.mark.parametrize("path", ARRIVES[::4])
def test_a_path_arrives_at_another_kind_or_is_refused(
    target: Target, third: str, path: str
) -> None:
    url, last = f"/v1/sandboxes/{third}/files", target.last_call()
    put = target.api.put(url, params={"path": path}, content=path.encode(), headers=FILE)
    assert put.status_code in (204, 422), put.text
    if put.status_code == 422:
        assert target.calls(last) == []
        return
    ran = target.api.post(f"/v1/sandboxes/{third}/exec", json={"argv": ["cat", "--", path]})
    assert ran.json()["stdout"] == path


@pytest.mark.parametrize("path", REFUSED)
def test_a_path_that_leads_elsewhere_is_refused_before_anybody_is_asked(
    target: Target, box: str, path: str
) -> None:
    url, last = f"/v1/sandboxes/{box}/files", target.last_call()
    answers = [
        target.api.put(url, params={"path": path}, content=b"x", headers=FILE),
        target.api.get(url, params={"path": path}),
        target.api.delete(url, params={"path": path}),
    ]
    assert {answer.status_code for answer in answers} == {400}
    assert target.calls(last) == []


def raw(target: Target, request: bytes) -> HTTPResponse:
    """What is answered to these very bytes."""
    port = target.api.base_url.port
    with socket.create_connection(("127.0.0.1", port or 80), 5) as connection:
        connection.sendall(request)
        answer = HTTPResponse(connection)
        answer.begin()
        return answer


HOSTILE = [b"a\0b", b"a\x7fb", b"a\tb", b"\xff\xfe", b"a b", b"%0d%0aX-Evil: 1", b"a\r\n X-Evil: 1"]


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize("name", [b"Idempotency-Key", b"Prefer", b"X-Request-Id", b"Accept"])
def test_a_headers_value_makes_no_other_header(target: Target, name: bytes, value: bytes) -> None:
    key = target.other_key.encode()
    lines = [
        b"POST /v1/route HTTP/1.1"
        if name != b"Idempotency-Key"
        else b"POST /v1/sandboxes HTTP/1.1",
        *(b"Host: h", b"Authorization: Bearer " + key, b"Content-Type: application/json"),
        *(
            b"Content-Length: 17",
            b"Connection: close",
            name + b": " + value,
            b"",
            b'{"ttl_seconds":1}',
        ),
    ]
    answer = raw(target, b"\r\n".join(lines))
    assert answer.status in (200, 400), answer.status
    assert answer.getheader("X-Evil") is None
    assert answer.getheader("X-Request-Id") != value.decode("latin-1")


FORGED = '{"level":"ERROR","message":"FORGED"}'


def test_no_word_of_a_client_is_a_line_of_the_log(target: Target, box: str) -> None:
    word = f"x\n{FORGED}"
    sent: list[tuple[str, str, dict[str, Any]]] = [
        ("POST", "/v1/sandboxes", {"json": {"image": word, word: 1, "labels": {"a": word}}}),
        ("POST", "/v1/sandboxes", {"json": {"env": {word: "v"}, "size": word}}),
        ("POST", "/v1/sandboxes", {"json": {"image": "nothing", "labels": {"a": FORGED}}}),
        ("GET", "/v1/sandboxes", {"params": {word: word, "state": word, "cursor": word}}),
        ("GET", f"/v1/sandboxes/{FORGED}", {}),
        ("GET", f"/v1/sandboxes/{box}/files", {"params": {"path": f"/{word}"}}),
        ("GET", f"/v1/sandboxes/{box}/files", {"params": {"path": f"/{FORGED}"}}),
        ("POST", f"/v1/sandboxes/{box}/exec", {"json": {"command": f"echo '{FORGED}'"}}),
        ("GET", f"/v1/{FORGED}", {}),
        ("GET", "/v1/sizes", {"headers": {"User-Agent": FORGED, "X-Request-Id": FORGED}}),
    ]
    before = len(logged(target))
    for method, path, more in sent:
        assert target.api.request(method, path, **more).status_code < 500
    lines = logged(target)[before:]
    assert len(lines) >= len(sent) - 2  # what finds no route reaches no function
    for line in lines:
        if line.startswith("{"):
            json.loads(line)
    assert "FORGED" not in "\n".join(lines)


def logged(target: Target) -> list[str]:
    return (target.state / "router.log").read_text().splitlines()
