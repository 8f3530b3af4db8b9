"""The E2B adapter's control plane, request by request: what is sent, what is believed."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs, unquote_plus

import httpx
import pytest

from sandbox_router.model import failure as fail
from sandbox_router.model.secret import Secret
from sandbox_router.model.size import Shape
from sandbox_router.model.spec import Cargo
from sandbox_router.ports import Order, Ref
from tests.contract.providers import contents
from tests.contract.providers.e2b_fake import DETAIL, KEY, MADE, ORDER, Fake, ok

ID = str(MADE["sandboxID"])
WRONG_IDS: tuple[Any, ...] = (
    "../../keys",
    "a/b",
    "",
    "A",
    "a.b",
    "-a",
    "a" * 58,
    "a\n",
    "ü",
    None,
    7,
    [],
)
GONE = ok({"code": 404, "message": "not found"}, 404)


def test_a_create_says_all_of_the_order_and_closes_the_ports() -> None:
    fake = Fake(ok(MADE, 201))
    made = fake.account.create(ORDER, timeout=20)
    (request,) = fake.sent
    assert (request.method, str(request.url)) == ("POST", "https://api.e2b.app/v2/sandboxes")
    assert request.headers["idempotency-key"] == "r-1"
    assert request.headers["x-api-key"] == KEY
    assert json.loads(request.content) == {
        "templateID": "base",
        "timeout": 300,
        "metadata": {"constal-sandbox": "r-1", "app.example.com/part": "ü&=%"},
        "envVars": {"A": "1", "B": "CANARY-env"},
        "network": {"allowPublicTraffic": False},
    }
    assert (made.id, made.state) == (ID, "running")
    assert {name: value.reveal() for name, value in made.access.items()} == {
        "token": "CANARY-token",
        "traffic": "CANARY-traffic",
        "domain": "e2b.app",
        "version": "0.6.0",
    }


def test_a_repeat_is_the_same_bytes_whatever_the_order_of_its_parts() -> None:
    fake = Fake(ok(MADE, 201), ok(MADE, 201))
    turned = Order(
        *(ORDER.identity, ORDER.reference, ORDER.shape),
        dict(sorted(ORDER.tags.items(), reverse=True)),
        ORDER.lifetime_seconds,
        Cargo({name: ORDER.cargo.env[name] for name in ("A", "B")}),
    )
    for order in (ORDER, turned):
        fake.account.create(order, timeout=20)
    assert fake.sent[0].content == fake.sent[1].content
    assert fake.sent[0].headers == fake.sent[1].headers


def test_an_identity_that_is_no_key_is_rejected_before_anything_is_sent() -> None:
    fake = Fake(ok(MADE, 201))
    for identity in ("", "R-1", "r_1", "r-1\r\nx: y", "r" * 256):
        wrong = Order(identity, "base", ORDER.shape, {}, 60)
        with pytest.raises(fail.Rejected):
            fake.account.create(wrong, timeout=20)
    assert fake.sent == []


@pytest.mark.parametrize(
    "changes",
    [
        *({"sandboxID": value} for value in WRONG_IDS),
        {"domain": "evil.org"},
        {"domain": "e2b.app.evil.org"},
        {"domain": "e2b.app@evil.org"},
        {"domain": "e2b.app:8443"},
        {"domain": "e2b.app/x"},
        {"domain": "169.254.169.254"},
        {"envdAccessToken": "a\r\nx: y"},
        {"envdAccessToken": 7},
        {"trafficAccessToken": ""},
    ],
)
def test_an_answer_that_could_lead_elsewhere_is_not_believed(changes: dict[str, Any]) -> None:
    fake = Fake(ok({**MADE, **changes}, 201))
    with pytest.raises(fail.ProtocolBroken):
        fake.account.create(ORDER, timeout=20)


@pytest.mark.parametrize(
    "body", [[], "x", None, {**MADE, "sandboxID": None}, {"a": "\ud800"}], ids=repr
)
def test_a_create_answered_with_something_else_is_unknown(body: Any) -> None:
    with pytest.raises(fail.Unknown):
        Fake(httpx.Response(201, content=json.dumps(body))).account.create(ORDER, timeout=20)


def test_a_detail_is_read_as_it_is() -> None:
    found = Fake(ok(DETAIL)).account.get(ID)
    assert found is not None
    assert (found.state, found.shape) == ("running", Shape(2000, 512, 1024))
    assert (found.created_at, found.ends_at) == (1795968000123, 1795968300000)
    assert found.tags == {"constal-sandbox": "r-1"}


@pytest.mark.parametrize(
    ("state", "read"), [("running", "running"), ("paused", "paused"), ("snapshotting", "starting")]
)
def test_a_state_nobody_knows_is_there_but_not_ready(state: str, read: str) -> None:
    found = Fake(ok({**DETAIL, "state": state})).account.get(ID)
    assert found is not None
    assert found.state == read


@pytest.mark.parametrize(
    "changes",
    [
        *({"sandboxID": "another"}, {"state": 1}, {"metadata": {"a": 1}}, {"metadata": []}),
        *({"startedAt": "yesterday"}, {"endAt": None}, {"cpuCount": "2"}, {"memoryMB": None}),
    ],
)
def test_a_detail_that_is_no_detail_of_this_instance_is_not_believed(
    changes: dict[str, Any],
) -> None:
    with pytest.raises(fail.ProtocolBroken):
        Fake(ok({**DETAIL, **changes})).account.get(ID)


@pytest.mark.parametrize("wrong", ["../keys", "a/b", "", "a?b", "A", "%2e%2e"])
def test_an_id_that_is_no_id_never_becomes_a_url(wrong: str) -> None:
    fake = Fake(ok(DETAIL))
    calls = (
        fake.account.get,
        fake.account.destroy,
        lambda i: fake.account.extend(i, 1),
        lambda i: fake.account.pause(i, "memory"),
        lambda i: fake.account.resume(i, 1),
    )
    for call in calls:
        with pytest.raises(fail.ProtocolBroken):
            call(wrong)
    assert fake.sent == []


def listed(name: str, started: str, **tags: str) -> dict[str, Any]:
    return {**DETAIL, "sandboxID": name, "startedAt": f"2026-11-29T{started}Z", "metadata": tags}


def test_find_asks_for_the_tags_and_believes_only_the_instance() -> None:
    mine = {"a/b": "1&2=3%", "c": "d"}
    filtered_badly = [listed("other", "01:00:00", c="d"), listed("mine", "02:00:00", **mine)]
    fake = Fake(ok(filtered_badly), ok(listed("mine", "02:00:00", **mine)))
    found = fake.account.find(mine)
    assert found is not None
    assert (found.id, found.access["token"]) == ("mine", Secret("CANARY-token"))
    query = parse_qs(fake.sent[0].url.query.decode())
    assert query["state"] == ["running,paused"]
    # The server decodes the filter once as a whole and its parts once more.
    parts = [part.split("=") for part in unquote_plus(query["metadata"][0]).split("&")]
    assert {unquote_plus(k): unquote_plus(v) for k, v in parts} == mine


def test_find_walks_all_pages_and_takes_the_oldest_match() -> None:
    pages = [
        ok([listed("new", "03:00:00", c="d")], x_next_token="t w/o+"),
        ok([listed("old", "01:00:00", c="d"), listed("not", "00:00:00", c="e")], x_next_token=""),
    ]
    fake = Fake(*pages, ok(listed("old", "01:00:00", c="d")))
    found = fake.account.find({"c": "d"})
    assert found is not None
    assert found.id == "old"
    assert parse_qs(fake.sent[1].url.query.decode())["nextToken"] == ["t w/o+"]


def test_what_is_gone_or_changed_after_the_list_is_not_found() -> None:
    page = ok([listed("mine", "01:00:00", c="d")])
    assert Fake(page, GONE).account.find({"c": "d"}) is None
    assert Fake(page, ok(listed("mine", "01:00:00", c="x"))).account.find({"c": "d"}) is None


def test_a_list_that_never_ends_is_broken() -> None:
    same = Fake(ok([], x_next_token="same"))
    with pytest.raises(fail.ProtocolBroken):
        same.account.find({"c": "d"})
    assert len(same.sent) == 2
    numbers = iter(range(1000))
    ever = Fake(lambda _: ok([], x_next_token=f"t{next(numbers)}"))
    with pytest.raises(fail.ProtocolBroken):
        ever.account.find({"c": "d"})
    assert len(ever.sent) == 20


@pytest.mark.parametrize("body", [{}, [1], [{"sandboxID": "../x"}], [{**DETAIL, "endAt": 0}], None])
def test_a_list_of_something_else_is_broken(body: Any) -> None:
    with pytest.raises(fail.ProtocolBroken):
        Fake(ok(body)).account.instances(None)


def test_pause_and_resume_say_what_is_kept_and_for_how_long() -> None:
    fake = Fake(httpx.Response(204), httpx.Response(204), ok(MADE, 201))
    fake.account.pause(ID, "memory")
    fake.account.pause(ID, "disk")
    fake.account.resume(ID, 77)
    sent = [(str(r.url.path), json.loads(r.content)) for r in fake.sent]
    assert sent == [
        (f"/sandboxes/{ID}/pause", {}),
        (f"/sandboxes/{ID}/pause", {"memory": False}),
        (f"/v2/sandboxes/{ID}/connect", {"timeout": 77}),
    ]


@pytest.mark.parametrize(
    ("seen", "kind"),
    [
        (ok({**DETAIL, "state": "paused"}), None),
        (ok(DETAIL), fail.Conflicted),
        (GONE, fail.Gone),
        (httpx.Response(500), fail.Unknown),
    ],
)
def test_a_conflict_on_pause_is_settled_by_looking(
    seen: httpx.Response, kind: type[fail.Failure] | None
) -> None:
    fake = Fake(ok({"code": 409, "message": "conflict"}, 409), seen)
    if kind is None:
        fake.account.pause(ID, "memory")
        return
    with pytest.raises(fail.Failure) as raised:
        fake.account.pause(ID, "memory")
    assert type(raised.value) is kind


@pytest.mark.parametrize(("seen", "kind"), [(ok(DETAIL), fail.Conflicted), (GONE, fail.Gone)])
def test_a_404_on_extend_is_settled_by_looking(
    seen: httpx.Response, kind: type[fail.Failure]
) -> None:
    with pytest.raises(fail.Failure) as raised:
        Fake(GONE, seen).account.extend(ID, 60)
    assert type(raised.value) is kind


def test_a_resume_that_answers_for_another_instance_is_not_believed() -> None:
    with pytest.raises(fail.ProtocolBroken):
        Fake(ok({**MADE, "sandboxID": "another"}, 201)).account.resume(ID, 60)


def test_own_addresses_are_used_as_the_operator_wrote_them() -> None:
    there = {"api_url": "http://127.0.0.1:9/e2b/", "sandbox_url": "http://127.0.0.1:9/e2b/sandbox"}
    fake = Fake(ok({**MADE, "domain": "corp.internal"}, 201), httpx.Response(200), **there)
    made = fake.account.create(ORDER, timeout=20)
    contents.write(fake.account, Ref(made.id, made.access), "/x", b"")
    assert [str(r.url.copy_with(query=None)) for r in fake.sent] == [
        "http://127.0.0.1:9/e2b/v2/sandboxes",
        "http://127.0.0.1:9/e2b/sandbox/files",
    ]
    assert "x-api-key" not in fake.sent[1].headers
