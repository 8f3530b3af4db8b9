"""What is not as the contract says is refused, by name and without its value."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.functions.world import NOBODY, World, call, event, invoke, on

DEEP = '{"labels":' + "[" * 32 + "]" * 32 + "}"
JSON = {"Content-Type": "application/json"}
SECRET = "CANARY-value"

BODIES: list[tuple[str, int, str]] = [
    # text, status, path of the first field error
    ("", 400, "body"),
    ("{", 400, "body"),
    ("null", 400, "body"),
    ("[]", 400, "body"),
    ('"x"', 400, "body"),
    ('{"size": "1x1", "size": "2x4"}', 400, "body"),
    ('{"labels": {"a": "1", "a": "1"}}', 400, "body"),
    ('{"ttl_seconds": NaN}', 400, "body"),
    ('{"vcpu": Infinity, "memory_gib": 1}', 400, "body"),
    ('{"vcpu": 1e999, "memory_gib": 1}', 400, "body"),
    ('{"ttl_seconds": 9007199254740993}', 400, "body"),
    ('{"ttl_seconds": ' + "9" * 5000 + "}", 400, "body"),
    (DEEP, 400, "body"),
    ("[" * 60_000, 400, "body"),
    ('{"image": "\\ud800"}', 400, "body"),
    ('{"\\udfff": 1}', 400, "body"),
    ('{"env": {"A": "\\u0000"}}', 400, "body"),
    ('{"a": 1} {}', 400, "body"),
    ('\ufeff{"size": "2x4"}', 400, "body"),
    ('{"x": "' + "y" * 65_536 + '"}', 413, "body"),
    ('{"siez": "2x4"}', 400, "siez"),
    ('{"tenant": "other"}', 400, "tenant"),
    ('{"state": "running", "expires_at": "x"}', 400, "state"),
    ('{"provider": {"pools": []}}', 400, "provider.pools"),
    ('{"size": 2}', 400, "size"),
    ('{"size": "2x"}', 400, "size"),
    ('{"size": "0x4"}', 400, "size"),
    ('{"size": "2x4:turbo"}', 400, "size"),
    ('{"size": "2x4\\n"}', 400, "size"),
    ('{"size": "2x4", "vcpu": 2, "memory_gib": 4}', 400, "size"),
    ('{"size": "2x4", "disk_gib": 4}', 400, "size"),
    ('{"vcpu": 2}', 400, "vcpu"),
    ('{"disk_gib": 2}', 400, "vcpu"),
    ('{"vcpu": 0, "memory_gib": 1}', 400, "vcpu"),
    ('{"vcpu": -1, "memory_gib": 1}', 400, "vcpu"),
    ('{"vcpu": "2", "memory_gib": 1}', 400, "vcpu"),
    ('{"vcpu": true, "memory_gib": 1}', 400, "vcpu"),
    ('{"size": "2x4:cheap", "provider": {"sort": "price"}}', 400, "provider.sort"),
    ('{"provider": {"sort": "fast"}}', 400, "provider.sort"),
    ('{"provider": {"order": ["A b"]}}', 400, "provider.order[0]"),
    ('{"provider": {"allow_fallbacks": "no"}}', 400, "provider.allow_fallbacks"),
    ('{"provider": {"max_price_per_hour": -0.1}}', 400, "provider.max_price_per_hour"),
    ('{"image": ""}', 400, "image"),
    ('{"image": "a b"}', 400, "image"),
    ('{"ttl_seconds": 29}', 400, "ttl_seconds"),
    ('{"ttl_seconds": 86401}', 400, "ttl_seconds"),
    ('{"ttl_seconds": 60.5}', 400, "ttl_seconds"),
    ('{"ttl_seconds": "60"}', 400, "ttl_seconds"),
    ('{"ttl_seconds": null}', 400, "ttl_seconds"),
    ('{"region": "us east"}', 400, "region"),
    ('{"isolation": "vm"}', 400, "isolation"),
    ('{"env": {"1A": "x"}}', 400, "env.1A"),
    ('{"env": {"A=B": "x"}}', 400, "env.A=B"),
    ('{"env": {"A": 1}}', 400, "env.A"),
    (json.dumps({"env": {f"A{n}": "" for n in range(101)}}), 400, "env"),
    (json.dumps({"env": {"A": "\u20ac" * 11_000}}, ensure_ascii=False), 400, "env"),
    ('{"labels": {"constal-tenant": "x"}}', 400, "labels.constal-tenant"),
    ('{"labels": {"Constal-x": "x"}}', 400, "labels.Constal-x"),
    ('{"labels": {"sandbox-router/x": "x"}}', 400, "labels.sandbox-router/x"),
    ('{"labels": {"-a": "x"}}', 400, "labels.-a"),
    ('{"labels": {"a/b/c": "x"}}', 400, "labels.a/b/c"),
    ('{"labels": {"": "x"}}', 400, "labels."),
    (json.dumps({"labels": {"k" * 64: "x"}}), 400, "labels." + "k" * 64),
    ('{"labels": {"a": "x\\ny"}}', 400, "labels.a"),
    (json.dumps({"labels": {"a": "v" * 257}}), 400, "labels.a"),
    (json.dumps({"labels": {"a": "\U0001f600" * 65}}), 400, "labels.a"),
    (json.dumps({"labels": {f"a{n}": "" for n in range(16)}}), 400, "labels"),
    ('{"idle_timeout_seconds": 29}', 400, "idle_timeout_seconds"),
    ('{"idle_timeout_seconds": 86401}', 400, "idle_timeout_seconds"),
    ('{"egress": {"mode": "deny_all"}}', 422, "egress"),
    ('{"egress": {"mode": "allow_all", "allow": []}}', 422, "egress"),
    ('{"credentials": [{"name": "x"}]}', 422, "credentials"),
    ('{"snapshot_id": "snap-x"}', 400, "snapshot_id"),
    ('{"vcpu": 1, "memory_gib": 1, "gpu": {"type": "x", "count": 1}}', 422, "gpu"),
    ('{"ports": [80]}', 422, "ports"),
    ('{"ports": [80], "ttl_seconds": 1}', 400, "ttl_seconds"),
]
COMMANDS: list[tuple[Any, int, str]] = [
    ({}, 400, "command"),
    ({"command": "x", "argv": ["x"]}, 400, "command"),
    ({"command": ""}, 400, "command"),
    ({"argv": []}, 400, "argv"),
    ({"argv": [""]}, 400, "argv[0]"),
    ({"argv": ["x", 1]}, 400, "argv[1]"),
    ({"command": "\u20ac" * 30_000}, 400, "command"),
    ({"argv": ["x", "y" * 65_536]}, 400, "argv"),
    ({"command": "x", "cwd": "tmp"}, 400, "cwd"),
    ({"command": "x", "cwd": "/tmp/../x"}, 400, "cwd"),
    ({"command": "x", "cwd": "/a\nb"}, 400, "cwd"),
    ({"command": "x", "timeout_seconds": 0}, 400, "timeout_seconds"),
    ({"command": "x", "timeout_seconds": 241}, 400, "timeout_seconds"),
    ({"command": "x", "max_output_bytes": -1}, 400, "max_output_bytes"),
    ({"command": "x", "max_output_bytes": 4_194_305}, 400, "max_output_bytes"),
    ({"command": "x", "env": {"a b": "c"}}, 400, "env.a b"),
    ({"command": "x", "stdin": 5}, 400, "stdin"),
    ({"command": "x", "stdin": "\u20ac" * 400_000}, 400, "stdin"),
    ({"command": "x", "stdin": "y" * 3 * 1024 * 1024}, 413, "body"),
    ({"command": "x", "user": "root"}, 400, "user"),
    ({"command": "x", "tty": True}, 422, "tty"),
    ({"command": "x", "detach": True}, 422, "detach"),
]


@pytest.mark.parametrize("name", ["create_sandbox", "route_sandbox"])
@pytest.mark.parametrize(("text", "status", "path"), BODIES, ids=range(len(BODIES)))
def test_a_bad_body(world: World, name: str, text: str, status: int, path: str) -> None:
    got = call(name, body=text, headers=JSON)
    assert got.status == status, got.text
    assert got.json["field_errors"][0]["path"] == path
    assert world.first.calls == []


@pytest.mark.parametrize(("body", "status", "path"), COMMANDS, ids=range(len(COMMANDS)))
def test_a_bad_command(world: World, body: Any, status: int, path: str) -> None:
    got = on("run_command", world.created(), body=body)
    assert got.status == status, got.text[:500]
    assert got.json["field_errors"][0]["path"] == path
    assert world.first.commands == []


@pytest.mark.parametrize(
    "body",
    [
        {"egress": {"mode": "allow_all"}, "ports": [], "credentials": None},
        {"idle_timeout_seconds": None, "gpu": None, "snapshot_id": None},
        {"region": None, "provider": None, "vcpu": None},
        {"size": "0.5x1"},
    ],
)
def test_asking_for_nothing_new_is_fine(world: World, body: Any) -> None:
    assert call("route_sandbox", body=body).status == 200


PATCHES: list[tuple[Any, int, str]] = [
    ({}, 400, "body"),
    ({"shorten": True}, 400, "body"),
    ({"shorten": True, "labels": {}}, 400, "shorten"),
    ({"ttl_seconds": 5}, 400, "ttl_seconds"),
    ({"labels": {"constal-x": ""}}, 400, "labels.constal-x"),
    ({"state": "running"}, 400, "state"),
    ({"ttl_seconds": 60, "egress": {"mode": "deny_all"}}, 422, "egress"),
    ({"ttl_seconds": 60, "idle_timeout_seconds": 5}, 400, "idle_timeout_seconds"),
]


@pytest.mark.parametrize(("body", "status", "path"), PATCHES, ids=range(len(PATCHES)))
def test_a_bad_patch(world: World, body: Any, status: int, path: str) -> None:
    got = on("update_sandbox", world.created(), body=body)
    assert (got.status, got.json["field_errors"][0]["path"]) == (status, path)


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("pause_sandbox", {"keep": "nothing"}),
        ("pause_sandbox", {"hard": True}),
        ("resume_sandbox", {"x": 1}),
        ("open_port", {"public": True}),
    ],
)
def test_a_bad_small_body(world: World, name: str, body: Any) -> None:
    path = {"port": "80"} if name == "open_port" else {}
    got = on(name, world.created(), body=body, path=path)
    assert (got.status, got.code) == (400, "invalid_request")


HEADERS: list[dict[str, str | list[str]]] = [
    {"Idempotency-Key": ""},
    {"Idempotency-Key": '""'},
    {"Idempotency-Key": "a b"},
    {"Idempotency-Key": "a\r\nX: b"},
    {"Idempotency-Key": "\u00e9"},
    {"Idempotency-Key": "x" * 256},
    {"Idempotency-Key": '"x'},
    {"Idempotency-Key": '"a\\b"'},
    {"Idempotency-Key": ["a", "a"]},
    {"idempotency-key": "a", "Idempotency-Key": "a"},
    {"Prefer": "wait=26"},
    {"Prefer": "wait=-1"},
    {"Prefer": "wait=x"},
    {"Prefer": "wait"},
    {"Content-Type": ["application/json", "text/plain"]},
]


@pytest.mark.parametrize("headers", HEADERS, ids=range(len(HEADERS)))
def test_a_bad_header(world: World, headers: dict[str, str | list[str]]) -> None:
    got = call("create_sandbox", body={}, headers=headers)
    assert (got.status, got.code) == (400, "invalid_request")
    assert world.first.calls == []


@pytest.mark.parametrize(
    "prefer", ["wait=0", "respond-async, wait=0", "return=minimal", 'WAIT="0"; x=y', "wait=25"]
)
def test_other_preferences_are_not_ours_to_refuse(world: World, prefer: str) -> None:
    assert call("create_sandbox", body={}, headers={"Prefer": prefer}).status in (201, 202)


@pytest.mark.parametrize("key", ["x", '"x"', "x" * 255, '"' + "x" * 255 + '"', '"a\\"b"', "%20"])
def test_a_good_key(world: World, key: str) -> None:
    assert call("create_sandbox", body={}, headers={"Idempotency-Key": key}).status == 201


@pytest.mark.parametrize(
    "kind",
    ["text/plain", "application/x-www-form-urlencoded", "application/json+x", "", "json", None],
)
def test_another_content_type_is_415(world: World, kind: str | None) -> None:
    headers = {} if kind is None else {"Content-Type": kind}
    got = call("create_sandbox", body="{}", headers=headers)
    assert (got.status, got.code) == (415, "unsupported_media_type")


def test_a_body_that_is_no_base64_is_400(world: World) -> None:
    given = {**event("create_sandbox", body={}), "body": "!!!", "isBase64Encoded": True}
    assert invoke("create_sandbox", given).status == 400
    sandbox_id = world.created()
    given = event("write_file", path={"id": sandbox_id}, query={"path": "/x"})
    given |= {"body": "YQ=", "isBase64Encoded": True}
    assert invoke("write_file", given).status == 400


def test_a_json_body_may_come_in_base64(world: World) -> None:
    got = call("create_sandbox", body=b'{"size": "1x1"}', headers=JSON)
    assert got.status == 201


QUERIES: list[tuple[str, dict[str, str | list[str]]]] = [
    ("list_sandboxes", {"limit": "0"}),
    ("list_sandboxes", {"limit": "201"}),
    ("list_sandboxes", {"limit": "1.0"}),
    ("list_sandboxes", {"limit": "1_0"}),
    ("list_sandboxes", {"limit": " 5"}),
    ("list_sandboxes", {"limit": "9" * 30}),
    ("list_sandboxes", {"limit": "\u0665"}),
    ("list_sandboxes", {"limit": ["1", "1"]}),
    ("list_sandboxes", {"limit": ""}),
    ("list_sandboxes", {"state": "alive"}),
    ("list_sandboxes", {"state": "running,"}),
    ("list_sandboxes", {"label": "a"}),
    ("list_sandboxes", {"label": "=b"}),
    ("list_sandboxes", {"label": "a b=c"}),
    ("list_sandboxes", {"label": "a=" + "\u20ac" * 86}),
    ("list_sandboxes", {"label": ["a=b"] * 16}),
    ("list_sandboxes", {"provider": "E2B"}),
    ("list_sandboxes", {"created_after": "yesterday"}),
    ("list_sandboxes", {"created_after": "2026-01-01"}),
    ("list_sandboxes", {"created_after": "2026-01-01T00:00:00"}),
    ("list_sandboxes", {"created_after": "2026-13-01T00:00:00Z"}),
    ("list_sandboxes", {"created_after": "2026-01-01T00:00:00+99:99"}),
    ("list_sandboxes", {"cursor": ""}),
    ("list_sandboxes", {"cursor": "\u00e9"}),
    ("list_sandboxes", {"cursor": "AAAA"}),
    ("list_sandboxes", {"page": "2"}),
    ("get_sandbox", {"refresh": "yes"}),
    ("get_sandbox", {"refresh": ""}),
    ("get_sandbox", {"api_key": SECRET}),
    ("create_sandbox", {"dry_run": "true"}),
    ("read_file", {}),
    ("read_file", {"path": ""}),
    ("read_file", {"path": "a"}),
    ("read_file", {"path": "/"}),
    ("read_file", {"path": "//"}),
    ("read_file", {"path": "/./"}),
    ("read_file", {"path": "/../keys"}),
    ("read_file", {"path": "/a/.."}),
    ("read_file", {"path": "/a/../b"}),
    ("read_file", {"path": "/a\0b"}),
    ("read_file", {"path": "/a\nb"}),
    ("read_file", {"path": "/a\rb"}),
    ("read_file", {"path": "/" + "\u20ac" * 1366}),
    ("read_file", {"path": ["/a", "/b"]}),
    ("read_file", {"path": "/a", "recursive": "1"}),
    ("list_directory", {"path": "/a/../.."}),
    ("get_health", {"verbose": "1"}),
]


@pytest.mark.parametrize(("name", "query"), QUERIES, ids=range(len(QUERIES)))
def test_a_bad_query(world: World, name: str, query: dict[str, str | list[str]]) -> None:
    given = {"id": world.created()} if name not in ("list_sandboxes", "get_health") else {}
    body: Any = {} if name == "create_sandbox" else None
    before = len(world.first.calls)
    got = call(name, path=given, query=query, body=body)
    assert (got.status, got.code) == (400, "invalid_request"), got.text
    assert SECRET not in got.text
    assert len(world.first.calls) == before


@pytest.mark.parametrize(
    "path", ["/a//b", "/a/...", "/..a", "/a\\..\\b", "/%2e%2e/x", "/a%252e", "/a/", "/a b", "/~"]
)
def test_odd_paths_are_data(world: World, path: str) -> None:
    sandbox_id = world.created()
    assert on("write_file", sandbox_id, query={"path": path}, body=b"x").status == 204
    assert list(world.first.files) == [path]


@pytest.mark.parametrize(
    "sandbox_id",
    [NOBODY, "x", "sbx-", "sbx-" + "A" * 26, NOBODY + "a", NOBODY + "\n", "..", "a/b", "sbx-%00"],
)
def test_what_is_no_sandbox_is_not_found_alike(world: World, sandbox_id: str) -> None:
    answers = {on("get_sandbox", i).text for i in (sandbox_id, NOBODY)}
    assert len(answers) == 1
    assert '"status":404' in answers.pop()
