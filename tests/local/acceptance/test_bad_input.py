"""What clients get wrong: a 4xx problem that says what, never a 5xx, and no provider is asked."""

from __future__ import annotations

import json
import socket
from http.client import HTTPResponse
from typing import Any

import httpx
import pytest

from tests.local.acceptance.deployment import Deployment

PROBLEM = "application/problem+json"
JSON = {"Content-Type": "application/json"}
ABSENT = "sbx-" + "a" * 26
DEEP = b'{"labels":' * 3000 + b"1" + b"}" * 3000


def refused(answer: httpx.Response, *statuses: int) -> dict[str, Any]:
    assert answer.status_code in (statuses or range(400, 500)), (answer.status_code, answer.text)
    assert answer.headers["content-type"] == PROBLEM
    found: dict[str, Any] = answer.json()
    assert found["status"] == answer.status_code
    assert found["request_id"] == answer.headers["x-request-id"]
    assert found["outcome"] == "none"
    return found


def body(value: object) -> bytes:
    return json.dumps(value).encode()


CREATES = {
    "an unknown field": body({"sizes": "2x4"}),
    "a field of the server": body({"state": "running", "tenant": "x", "expires_at": "now"}),
    "a number as size": body({"size": 24}),
    "a text as ttl": body({"ttl_seconds": "60"}),
    "a float as ttl": body({"ttl_seconds": 60.5}),
    "a flag as ttl": body({"ttl_seconds": True}),
    "a ttl too short": body({"ttl_seconds": 29}),
    "a ttl too long": body({"ttl_seconds": 86_401}),
    "a negative ttl": body({"ttl_seconds": -60}),
    "a huge ttl": b'{"ttl_seconds":' + b"9" * 5000 + b"}",
    "an infinite number": b'{"vcpu": 1e999, "memory_gib": 1}',
    "not a number": b'{"vcpu": NaN, "memory_gib": 1}',
    "a size and a shape": body({"size": "2x4", "vcpu": 2, "memory_gib": 4}),
    "a size that is none": body({"size": "big"}),
    "a size nobody has": body({"size": "99x999", "provider": {"only": ["e2b"]}}),
    "an unknown suffix": body({"size": "2x4:best"}),
    "a suffix and a sort": body({"size": "2x4:cheap", "provider": {"sort": "price"}}),
    "an unknown image": body({"image": "nothing-of-ours"}),
    "a region nobody has": body({"region": "moon-1"}),
    "isolation nobody has": body({"isolation": "microvm"}),
    "unknown isolation": body({"isolation": "hope"}),
    "sixteen labels": body({"labels": {f"l{n}": "v" for n in range(16)}}),
    "a long label value": body({"labels": {"a": "v" * 257}}),
    "a label key of ours": body({"labels": {"constal-sandbox-id": "mine"}}),
    "a label key that is none": body({"labels": {"a b": "v"}}),
    "a label with a line break": body({"labels": {"a": "v\r\nX-Evil: 1"}}),
    "a label with NUL": body({"labels": {"a": "v\0"}}),
    "a label that is no text": body({"labels": {"a": 1}}),
    "a hundred and one variables": body({"env": {f"E{n}": "v" for n in range(101)}}),
    "env over 32 KB": body({"env": {"A": "v" * 32_769}}),
    "env with NUL": body({"env": {"A": "v\0"}}),
    "env with a bad name": body({"env": {"A=B": "v"}}),
    "a null env": body({"env": None}),
    "a lone surrogate": b'{"labels": {"a": "\\ud800"}}',
    "bytes that are no UTF-8": b'{"labels": {"a": "\xff"}}',
    "a key given twice": b'{"ttl_seconds": 60, "ttl_seconds": 90}',
    "deep nesting": DEEP,
    "a list": b"[]",
    "a null": b"null",
    "half a document": b'{"size": "2x4"',
    "nothing": b"",
    "two documents": b"{}{}",
    "over 64 KB": body({"labels": {"a": "v" * 70_000}}),
    "a part that is not built": body({"egress": {"mode": "deny_all"}}),
    "an unknown provider": body({"provider": {"only": ["nobody"]}}),
    "an unknown ability": body({"provider": {"require": ["telepathy"]}}),
    "a negative price": body({"provider": {"max_price_per_hour": -1}}),
    "a price nobody meets": body({"provider": {"max_price_per_hour": 0.000001}}),
}


@pytest.mark.parametrize("sent", CREATES.values(), ids=CREATES.keys())
@pytest.mark.parametrize("path", ["/v1/sandboxes", "/v1/route"])
def test_a_bad_create_is_refused_before_anybody_is_asked(
    shared: Deployment, path: str, sent: bytes
) -> None:
    last = shared.last_call()
    answer = shared.api.post(path, content=sent, headers=JSON)
    if path == "/v1/route" and answer.status_code == 200:
        assert answer.json()["candidates"] == []  # a dry run may say that nobody can
    else:
        refused(answer, 400, 413, 422)
    assert shared.calls(after=last) == []
    assert shared.api.get("/v1/sandboxes").json()["data"] == []


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({**JSON, "Idempotency-Key": ""}, 400),
        ({**JSON, "Idempotency-Key": "k" * 256}, 400),
        ({**JSON, "Idempotency-Key": "a b"}, 400),
        ({**JSON, "Idempotency-Key": '"open'}, 400),
        ({**JSON, "Prefer": "wait=26"}, 400),
        ({**JSON, "Prefer": "wait=soon"}, 400),
        ({"Content-Type": "text/plain"}, 415),
        ({}, 415),
    ],
)
def test_bad_headers_of_a_create_are_refused(
    shared: Deployment, headers: dict[str, str], status: int
) -> None:
    last = shared.last_call()
    refused(shared.api.post("/v1/sandboxes", content=b"{}", headers=headers), status)
    twice = [*JSON.items(), ("Idempotency-Key", "a"), ("Idempotency-Key", "b")]
    refused(shared.api.post("/v1/sandboxes", content=b"{}", headers=twice), 400)
    assert shared.calls(after=last) == []


@pytest.mark.parametrize("key", ["", "Bearer", "Bearer nobody", "Basic YTpi", "bearer \xff"])
def test_without_a_valid_key_every_path_is_the_same_401(shared: Deployment, key: str) -> None:
    answers = [
        httpx.request(
            method,
            f"{shared.api.base_url}{path}",
            headers=[(b"Authorization", key.encode("latin-1"))],
        )
        for method, path in [
            ("GET", "/v1/sandboxes"),
            ("POST", "/v1/sandboxes"),
            ("GET", f"/v1/sandboxes/{ABSENT}"),
        ]
    ]
    documents = [refused(answer, 401) | {"request_id": ""} for answer in answers]
    assert all(document == documents[0] for document in documents)


@pytest.mark.parametrize(
    "made_up",
    [ABSENT, "sbx-1", "x" * 300, "..", "%2e%2e%2fv1", "a%00b", "%ff", "sbx-%0d%0aX", "'--", "{id}"],
)
def test_an_id_that_is_none_is_the_same_404_everywhere(shared: Deployment, made_up: str) -> None:
    last = shared.last_call()
    url = f"/v1/sandboxes/{made_up}"
    answers = [
        shared.api.get(url),
        shared.api.delete(url),
        shared.api.patch(url, json={"ttl_seconds": 60}),
        shared.api.post(f"{url}/pause"),
        shared.api.post(f"{url}/resume"),
        shared.api.post(f"{url}/exec", json={"command": "true"}),
        shared.api.get(f"{url}/files", params={"path": "/a"}),
        shared.api.put(f"{url}/files", params={"path": "/a"}, content=b""),
        shared.api.delete(f"{url}/files", params={"path": "/a"}),
        shared.api.get(f"{url}/directories", params={"path": "/a"}),
        shared.api.post(f"{url}/ports/80"),
        shared.api.delete(f"{url}/ports/80"),
    ]
    documents = [refused(answer, 404) | {"request_id": ""} for answer in answers]
    assert all(document == documents[0] for document in documents)
    assert shared.calls(after=last) == []


@pytest.mark.parametrize(
    "query",
    [
        {"limit": "0"},
        {"limit": "201"},
        {"limit": "-1"},
        {"limit": "1e2"},
        {"limit": ""},
        {"cursor": "forged"},
        {"cursor": "A" * 5000},
        {"state": "sleeping"},
        {"label": "novalue"},
        {"created_after": "yesterday"},
        {"created_after": "2026-01-01T00:00:00"},
        {"colour": "red"},
        {"provider": "../e2b"},
    ],
)
def test_a_bad_list_query_is_refused(shared: Deployment, query: dict[str, str]) -> None:
    refused(shared.api.get("/v1/sandboxes", params=query), 400)


def test_bad_calls_to_a_living_sandbox_do_not_reach_it(shared: Deployment) -> None:
    box = shared.create().json()
    url = f"/v1/sandboxes/{box['id']}"
    last = shared.last_call()
    paths: list[str | None] = [
        *("", "relative", "/a/../b", "/..", "/a\0b", "/" + "a" * 5000, "/a\r\nb", "/", None)
    ]
    for path in paths:
        query = {} if path is None else {"path": path}
        refused(shared.api.put(f"{url}/files", params=query, content=b"x"), 400)
        refused(shared.api.delete(f"{url}/files", params=query), 400)
        if path != "/":
            refused(shared.api.get(f"{url}/directories", params=query), 400)
    for encoded in ("path=%2Fa%2F..%2Fb", "path=%2Fa&path=%2Fb", "path=%ff", "path=/a&mode=1"):
        refused(shared.api.get(f"{url}/files?{encoded}"), 400)
    refused(
        shared.api.put(f"{url}/files", params={"path": "/a"}, content=b"x" * (4 * 2**20 + 1)), 413
    )
    commands: list[dict[str, Any]] = [
        {},
        {"command": ""},
        {"command": "true", "argv": ["true"]},
        {"argv": []},
        {"command": "a\0b"},
        {"command": "x" * 65_537},
        {"command": "true", "timeout_seconds": 241},
        {"command": "true", "timeout_seconds": 0},
        {"command": "true", "cwd": "relative"},
        {"command": "true", "stdin": "x" * (2**20 + 1)},
        {"command": "true", "env": {"": "x"}},
        {"command": ["true"]},
        {"command": "true", "detach": True},
    ]
    for command in commands:
        refused(shared.api.post(f"{url}/exec", json=command), 400, 413, 422)
    for port in ("0", "65536", "http", "-1", "80%20"):
        refused(shared.api.post(f"{url}/ports/{port}"), 400)
    for change in ({}, {"ttl_seconds": 29}, {"shorten": True}, {"labels": {"constal-x": "1"}}):
        refused(shared.api.patch(url, json=change), 400)
    refused(shared.api.post(f"{url}/pause", json={"keep": "nothing"}), 400)
    assert shared.calls(after=last) == []
    shared.destroy(box["id"])


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET\r\n\r\n",
        b"GET /v1/health HTTP/1.1\r\nHost: h\r\nNo colon\r\n\r\n",
        b"GET /v1/health HTTP/1.1\r\nHost: h\r\nA: " + b"a" * 20_000 + b"\r\n\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: h\r\n\r\n",
        b"POST /v1/sandboxes HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n"
        b"Content-Length: 2\r\n\r\nab",
        b"POST /v1/sandboxes HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n",
    ],
)
def test_what_is_no_http_is_refused_and_the_router_goes_on(shared: Deployment, data: bytes) -> None:
    port = httpx.URL(str(shared.api.base_url)).port
    with socket.create_connection(("127.0.0.1", port), 5) as connection:
        connection.sendall(data)
        answer = HTTPResponse(connection)
        answer.begin()
        assert 400 <= answer.status < 500
        assert answer.getheader("content-type") == PROBLEM
        assert json.loads(answer.read())["status"] == answer.status
    assert shared.api.get("/v1/health").status_code == 200


def test_public_paths_need_no_key_and_say_nothing_secret(shared: Deployment) -> None:
    for path in ("/v1/health", "/v1/openapi.json"):
        answer = httpx.get(f"{shared.api.base_url}{path}")
        assert answer.status_code == 200
        assert str(shared.state) not in answer.text
