"""The OpenSandbox adapter's control plane, request by request: what is sent, what is believed."""

from __future__ import annotations

import hashlib
import json
import time
from base64 import b32encode
from dataclasses import replace
from datetime import datetime
from typing import Any
from urllib.parse import parse_qs, parse_qsl

import httpx
import pytest

from adapters import providers
from adapters.providers.opensandbox import declare, provider
from sandbox_router.model import failure as fail
from sandbox_router.model.secret import Secret
from tests.contract.providers import contents
from tests.contract.providers.opensandbox_fake import (
    DETAIL,
    GONE,
    ID,
    KEY,
    ORDER,
    PROXY,
    REF,
    Fake,
    detail,
    error,
    item,
    ok,
    page,
    state,
)

PONG = httpx.Response(200)
WRONG_IDS: tuple[Any, ...] = (
    *("../../keys", "a/b", "", "A", "a.b", "-a", "a" * 64, "a\n", "ü", "%2e%2e", "a?b"),
    *(None, 7, []),
)


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider, "POLL_SECONDS", 0.001)


def base32(text: str) -> str:
    return b32encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=").lower()


def test_a_create_says_all_of_the_order_and_waits_for_the_agent() -> None:
    fake = Fake(ok(DETAIL, 202), PONG)
    made = fake.account.create(ORDER, timeout=20)
    assert fake.asked == ["POST /v1/sandboxes", f"GET {PROXY}/ping"]
    assert {r.headers["open-sandbox-api-key"] for r in fake.sent} == {KEY}
    tags = {
        "constal-tenant": base32("t" * 128),
        "constal-namespace": base32(""),
        "constal-sandbox": "r-1",
        "team": "a",
    }
    assert json.loads(fake.sent[0].content) == {
        "image": {"uri": "python:3.12"},
        "entrypoint": ["tail", "-f", "/dev/null"],
        "timeout": 300,
        "resourceLimits": {"cpu": "500m", "memory": "1536Mi"},
        "env": {"B": "CANARY-env"},
        "metadata": tags,
    }
    assert (made.id, made.state, made.tags, made.access) == (ID, "running", tags, {})


def test_reduced_tags_fit_the_labels_of_the_profile_and_are_always_the_same() -> None:
    limits = providers.profile("opensandbox").labels
    for text in ("", "short", "t" * 128, "ü" * 100):
        (held,) = declare.held({"constal-tenant": text}).values()
        assert len(held) == 52 <= limits.value_length
        assert declare.held({"constal-tenant": text}) == {"constal-tenant": held}
    verbatim = {"constal-sandbox-id": "sbx-1", "constal-account": "a" * 52, "x": "y" * 256}
    assert declare.held(verbatim) == verbatim


def test_a_life_the_server_would_not_take_is_rejected_before_anything_is_sent() -> None:
    fake = Fake(ok(DETAIL, 202))
    with pytest.raises(fail.Rejected):
        fake.account.create(replace(ORDER, lifetime_seconds=59), timeout=20)
    assert fake.sent == []


def test_a_create_is_sent_once_whatever_becomes_of_it() -> None:
    fake = Fake(httpx.Response(503))
    with pytest.raises(fail.Unknown):
        fake.account.create(ORDER, timeout=20)
    assert len(fake.sent) == 1


def test_what_is_still_made_or_whose_agent_is_silent_is_starting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pending = Fake(ok({**DETAIL, "status": {"state": "Pending"}}, 202))
    assert pending.account.create(ORDER, timeout=20).state == "starting"
    assert len(pending.sent) == 1
    late = Fake(ok(DETAIL, 202), error(502, "BACKEND_CONNECTION_FAILED"), PONG)
    assert late.account.create(ORDER, timeout=20).state == "running"
    monkeypatch.setattr(provider, "READY_SECONDS", 0.02)
    silent = Fake(ok(DETAIL, 202), error(502, "BACKEND_CONNECTION_FAILED"))
    assert silent.account.create(ORDER, timeout=20).state == "starting"


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (error(429, "KUBERNETES::POOL_CAPACITY_EXHAUSTED"), fail.Capacity),
        (error(429, "TOO_MANY_REQUESTS"), fail.RateLimited),
        (error(403, "KUBERNETES::QUOTA_EXCEEDED"), fail.Quota),
        (error(403, "FORBIDDEN"), fail.Permission),
        (error(403, "DENIED_BY_POLICY"), fail.Policy),
        (error(401, "INVALID_API_KEY"), fail.BrokenPool),
        (error(400, "SANDBOX::INVALID_METADATA_LABEL"), fail.Rejected),
        (error(400, "SANDBOX::API_NOT_SUPPORTED"), fail.PoolUnsupported),
        (error(404, "KUBERNETES::POOL_NOT_FOUND"), fail.Rejected),
        (error(404, "SNAPSHOT::NOT_FOUND"), fail.CaptureGone),
        (error(410, "SNAPSHOT::NOT_FOUND"), fail.Rejected),
        (error(422, ""), fail.Rejected),
        (error(500, "DOCKER::SANDBOX_IMAGE_PULL_FAILED"), fail.Rejected),
        (error(503, "DOCKER::INITIALIZATION_ERROR"), fail.Outage),
        (error(503, "TENANT_PROVIDER_UNAVAILABLE"), fail.Outage),
        # Whoever answers these may have made something before.
        (error(500, "DOCKER::SANDBOX_START_FAILED"), fail.Unknown),
        (error(500, "KUBERNETES::API_ERROR"), fail.Unknown),
        (error(504, "KUBERNETES::POD_READY_TIMEOUT"), fail.Unknown),
        (error(503, "SOMETHING_NEW"), fail.Unknown),
        (httpx.Response(502, content=b"<html>"), fail.Unknown),
    ],
    ids=lambda value: value.text if isinstance(value, httpx.Response) else value.__name__,
)
def test_every_answer_to_a_create_has_its_class(
    answer: httpx.Response, kind: type[fail.Failure]
) -> None:
    with pytest.raises(fail.Failure) as raised:
        Fake(answer).account.create(ORDER, timeout=20)
    assert type(raised.value) is kind


@pytest.mark.parametrize(
    "changes",
    [
        *({"id": value} for value in WRONG_IDS),
        *({"status": value} for value in (None, "Running", {}, {"state": 7})),
        *({"createdAt": value} for value in (None, "yesterday", 0)),
        {"expiresAt": "never"},
        {"metadata": {"a": 1}},
        {"metadata": []},
    ],
    ids=str,
)
def test_an_instance_that_is_none_is_not_believed(changes: dict[str, Any]) -> None:
    with pytest.raises(fail.ProtocolBroken):
        Fake(ok({**DETAIL, **changes}, 202)).account.create(ORDER, timeout=20)
    with pytest.raises(fail.ProtocolBroken):
        Fake(detail(**changes)).account.get(ID)
    with pytest.raises(fail.ProtocolBroken):
        Fake(page({**DETAIL, **changes})).account.instances(None)


def test_a_detail_is_read_as_it_is() -> None:
    found = Fake(detail()).account.get(ID)
    assert found is not None
    assert (found.state, found.shape, found.tags) == ("running", None, {"constal-sandbox": "r-1"})
    assert (found.created_at, found.ends_at) == (1795968000123, 1795968300000)
    endless = Fake(detail(expiresAt=None, metadata=None)).account.get(ID)
    assert endless is not None
    assert (endless.ends_at, endless.tags) == (None, {})
    assert Fake(GONE).account.get(ID) is None
    with pytest.raises(fail.ProtocolBroken):
        Fake(detail(id="another")).account.get(ID)


@pytest.mark.parametrize(
    ("told", "read"),
    [
        *(("Pending", "starting"), ("Resuming", "starting"), ("Running", "running")),
        *(("Pausing", "pausing"), ("Paused", "paused"), ("Stopping", "failed")),
        *(("Terminated", "failed"), ("Failed", "failed"), ("Unknown", "starting")),
    ],
)
def test_every_state_has_its_word_and_a_new_one_is_not_ready(told: str, read: str) -> None:
    found = Fake(state(told)).account.get(ID)
    assert found is not None
    assert found.state == read


@pytest.mark.parametrize("wrong", [value for value in WRONG_IDS if isinstance(value, str)])
def test_an_id_that_is_no_id_never_becomes_a_url(wrong: str) -> None:
    fake = Fake(detail())
    account = fake.account
    calls = (
        account.get,
        account.destroy,
        lambda i: account.extend(i, 60),
        lambda i: account.pause(i, "disk"),
        lambda i: account.resume(i, 60),
        lambda i: account.open_port(type(REF)(i), 80),
        lambda i: contents.read(account, type(REF)(i), "/x", 1),
        lambda i: account.move_file(type(REF)(i), "/x", "/y"),
    )
    for call in calls:
        with pytest.raises(fail.ProtocolBroken):
            call(wrong)
    assert fake.sent == []


def test_find_asks_for_the_held_tags_and_believes_only_the_instance() -> None:
    tags = {"constal-tenant": "t" * 128, "constal-sandbox": "r-1", "a/b": "1-2_3"}
    held = declare.held(tags)
    others = [item("other", "01:00:00", **{**held, "a/b": "x"}), item("less", "02:00:00", c="d")]
    fake = Fake(page(*others, item("mine", "03:00:00", **held, extra="1")))
    found = fake.account.find(tags)
    assert found is not None
    assert found.id == "mine"
    query = parse_qs(fake.sent[0].url.query.decode())
    assert (query["page"], query["pageSize"]) == (["1"], ["100"])
    assert dict(parse_qsl(query["metadata"][0], strict_parsing=True)) == held
    assert Fake(page(*others)).account.find(tags) is None


def test_find_walks_the_pages_and_takes_the_oldest() -> None:
    fake = Fake(
        page(item("new", "03:00:00", a="b"), more=True),
        page(item("old", "01:00:00", a="b"), item("not", "00:00:00", a="c"), number=2),
    )
    found = fake.account.find({"a": "b"})
    assert found is not None
    assert found.id == "old"
    assert [parse_qs(r.url.query.decode())["page"] for r in fake.sent] == [["1"], ["2"]]


def test_a_list_that_never_ends_or_answers_for_another_page_is_broken() -> None:
    numbers = iter(range(1, 1000))
    ever = Fake(lambda _: page(item("x", "01:00:00"), number=next(numbers), more=True))
    with pytest.raises(fail.ProtocolBroken):
        ever.account.find({"a": "b"})
    assert len(ever.sent) == 20
    for wrong in (page(number=2), page(more=True), ok([]), ok({"items": []}), ok({"items": 1})):
        with pytest.raises(fail.ProtocolBroken):
            Fake(wrong).account.instances(None)


def test_a_cursor_is_the_number_of_the_next_page() -> None:
    fake = Fake(page(item("a", "01:00:00"), more=True), page(item("b", "01:00:00"), number=2))
    first = fake.account.instances(None)
    second = fake.account.instances(first.cursor)
    assert [i.id for i in (*first.instances, *second.instances)] == ["a", "b"]
    assert second.cursor is None


@pytest.mark.parametrize("answer", [error(500, "X"), error(503, "X")])
def test_a_server_that_is_in_trouble_is_an_outage_when_it_is_verified(
    answer: httpx.Response,
) -> None:
    with pytest.raises(fail.Outage):
        Fake(answer).account.verify()


def test_extend_says_the_moment_and_tells_what_refuses() -> None:
    fake = Fake(ok({"expiresAt": "2099-01-01T00:00:00Z"}))
    fake.account.extend(ID, 600)
    assert fake.asked == [f"POST /v1/sandboxes/{ID}/renew-expiration"]
    until = datetime.fromisoformat(json.loads(fake.sent[0].content)["expiresAt"])
    assert abs(until.timestamp() - time.time() - 600) < 5
    for answer, kind in ((GONE, fail.Gone), (error(409, "X"), fail.Conflicted)):
        with pytest.raises(kind):
            Fake(answer).account.extend(ID, 600)


def test_pause_waits_until_it_is_so() -> None:
    fake = Fake(httpx.Response(202), state("Pausing"), state("Paused"))
    fake.account.pause(ID, "disk")
    assert len(fake.sent) == 3
    repeated = Fake(error(409, "DOCKER::SANDBOX_NOT_RUNNING"), state("Paused"))
    repeated.account.pause(ID, "disk")
    on_its_way = Fake(error(409, "KUBERNETES::INVALID_STATE"), state("Pausing"), state("Paused"))
    on_its_way.account.pause(ID, "disk")


def test_a_pause_that_is_refused_or_does_not_end_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    conflict = error(409, "DOCKER::SANDBOX_NOT_RUNNING")
    for replies, kind in (
        ((conflict, detail()), fail.Conflicted),
        ((conflict, GONE), fail.Gone),
        ((GONE,), fail.Gone),
        ((httpx.Response(202), GONE), fail.Gone),
    ):
        with pytest.raises(kind):
            Fake(*replies).account.pause(ID, "disk")
    ever = Fake(httpx.Response(202), state("Pausing"))
    ever.account._timeouts = replace(ever.account._timeouts, call=0.02)
    with pytest.raises(fail.Unknown) as raised:
        ever.account.pause(ID, "disk")
    assert type(raised.value) is fail.Unknown


def test_a_resume_moves_the_end_only_away() -> None:
    renewed = ok({"expiresAt": "2099-01-01T00:00:00Z"})
    short = Fake(httpx.Response(202), state("Resuming"), detail(), renewed)
    assert short.account.resume(ID, 600).state == "running"
    assert short.asked[-1].endswith("/renew-expiration")
    long = Fake(error(409, "X"), detail(expiresAt="2099-01-01T00:00:00Z"))
    long.account.resume(ID, 600)
    assert len(long.sent) == 2
    endless = Fake(httpx.Response(202), detail(expiresAt=None))
    endless.account.resume(ID, 600)
    assert len(endless.sent) == 2


@pytest.mark.parametrize(
    "base", ["https://a.b", "https://a.b/", "https://a.b/v1", "https://a.b/v1/"]
)
def test_the_servers_address_may_name_the_version_or_not(base: str) -> None:
    fake = Fake(detail(), url=base)
    fake.account.get(ID)
    assert str(fake.sent[0].url) == f"https://a.b/v1/sandboxes/{ID}"


def test_a_ports_address_is_the_servers_own_and_open_to_all() -> None:
    there = f"sandboxes.corp.internal/v1/sandboxes/{ID}/proxy/8080"
    fake = Fake(ok({"endpoint": there, "headers": {"X-A": "b"}}))
    endpoint = fake.account.open_port(REF, 8080)
    assert fake.asked == [f"GET /v1/sandboxes/{ID}/endpoints/8080?use_server_proxy=true"]
    assert (endpoint.url, endpoint.headers) == (f"https://{there}", {"X-A": "b"})
    assert endpoint.visibility == "public"
    fake.account.close_port(REF, 8080)
    assert len(fake.sent) == 1


def test_a_port_elsewhere_is_believed_only_where_the_operator_said_so() -> None:
    answer = ok({"endpoint": f"ports.corp.internal/sandboxes/{ID}/proxy/80"})
    with pytest.raises(fail.ProtocolBroken):
        Fake(answer).account.open_port(REF, 80)
    said = Fake(answer, endpoint_url="https://ports.corp.internal")
    assert said.account.open_port(REF, 80).url.startswith("https://ports.corp.internal/")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"endpoint": None},
        {"endpoint": "evil.org/x"},
        {"endpoint": "sandboxes.corp.internal.evil.org/x"},
        {"endpoint": "sandboxes.corp.internal@evil.org/x"},
        {"endpoint": "sandboxes.corp.internal:8443/x"},
        {"endpoint": "169.254.169.254/latest"},
        {"endpoint": "sandboxes.corp.internal/x\r\ny: z"},
        {"endpoint": "sandboxes.corp.internal/x?y=z"},
        {"endpoint": "sandboxes.corp.internal/x", "headers": {"A": "b\r\nc: d"}},
        {"endpoint": "sandboxes.corp.internal/x", "headers": {"A": 1}},
        {"endpoint": "sandboxes.corp.internal/x", "headers": []},
        {"endpoint": "sandboxes.corp.internal/x", "headers": [1]},
    ],
    ids=str,
)
def test_an_endpoint_that_leads_elsewhere_is_not_believed(body: dict[str, Any]) -> None:
    if body.get("headers") == []:
        assert Fake(ok(body)).account.open_port(REF, 80).headers == {}  # empty either way
        return
    with pytest.raises(fail.ProtocolBroken):
        Fake(ok(body)).account.open_port(REF, 80)


def test_a_pool_needs_the_address_of_its_server() -> None:
    loaded = providers.load("opensandbox")
    wrong: tuple[dict[str, str], ...] = (
        {},
        {"endpoint_url": "https://a.b"},
        {"api_url": "http://a.b"},
        {"api_url": "https://a.b", "endpoint_url": "ftp://a.b"},
        {"api_url": "https://a.b", "other": "x"},
    )
    for settings in wrong:
        with pytest.raises(fail.Invalid):
            loaded.build(loaded.profile, Secret("key"), settings)
    loaded.build(loaded.profile, Secret("key"), {"api_url": "http://127.0.0.1:8080/v1"})
