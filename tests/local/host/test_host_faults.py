"""Each fault does what the table says, in the vendor's own shape."""

from __future__ import annotations

import time
from typing import Any

import httpx
import pytest

from infra.local.host.faults import FAULTS, Effect
from tests.local.host.hosting import E2B, Host, until

REFUSALS: dict[str, tuple[int, str | None]] = {
    "capacity": (503, "sandbox_capacity_unavailable"),
    "rate_limited": (429, None),
    "quota": (429, None),
    "unauthorized": (401, None),
    "forbidden": (403, None),
    "policy": (403, None),
    "invalid": (400, None),
    "not_found": (404, None),
    "conflict": (409, None),
    "error_500": (500, "internal_server_error"),
    "error_503": (503, None),
}


def test_every_fault_is_tested_here() -> None:
    refused = {name for name, effect in FAULTS.items() if effect is Effect.REFUSED}
    assert refused == set(REFUSALS)


@pytest.mark.parametrize("fault", REFUSALS)
def test_a_refusal_comes_before_any_effect(alpha: E2B, host: Host, fault: str) -> None:
    host.order(fault=fault, op="create", times=1, retry_after=7)
    answer = alpha.create(key="refused-1")
    body = answer.json()
    assert (answer.status_code, body.get("error_code")) == REFUSALS[fault]
    assert body["code"] == answer.status_code
    assert answer.headers.get("Retry-After") == ("7" if fault == "rate_limited" else None)
    assert alpha.listed() == []
    assert alpha.create(key="refused-1").status_code == 201
    (call,) = [call for call in _calls(host, "create")[-2:] if call["fault"]]
    assert (call["fault"], call["status"]) == (fault, answer.status_code)


def _calls(host: Host, op: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = host.http.get("/_host/calls", params={"op": op}).json()["calls"]
    return found


def test_made_503_leaves_the_instance(alpha: E2B, host: Host) -> None:
    host.order(fault="made_503", op="create", times=1)
    assert alpha.create(key="made-1").status_code == 503
    (made,) = alpha.listed()
    assert alpha.create(key="made-1").json()["sandboxID"] == made


def test_a_lost_answer_leaves_the_instance(alpha: E2B, host: Host) -> None:
    host.order(fault="lost_answer", op="create", times=1)
    with pytest.raises(httpx.RemoteProtocolError):
        alpha.create(key="lost-1")
    (made,) = alpha.listed()
    call = _calls(host, "create")[-1]
    assert (call["fault"], call["status"], call["instance_id"]) == ("lost_answer", None, made)
    assert alpha.create(key="lost-1").json()["sandboxID"] == made


def test_a_lost_answer_to_delete_has_deleted(alpha: E2B, host: Host) -> None:
    made = alpha.made()["sandboxID"]
    host.order(fault="lost_answer", op="delete", times=1)
    with pytest.raises(httpx.RemoteProtocolError):
        alpha.http.delete(f"/sandboxes/{made}")
    assert alpha.http.get(f"/sandboxes/{made}").status_code == 404


def test_a_cut_connection_has_no_effect(alpha: E2B, host: Host) -> None:
    host.order(fault="cut", op="create", times=1)
    with pytest.raises((httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError)):
        alpha.create()
    assert alpha.listed() == []


def test_a_late_effect_comes_after_the_answer(alpha: E2B, host: Host) -> None:
    host.order(fault="late", op="create", times=1, seconds=1)
    began = time.monotonic()
    assert alpha.create(key="late-1").status_code == 504
    assert time.monotonic() - began < 0.9
    assert alpha.listed() == []
    until(alpha.listed, 3)
    assert time.monotonic() - began > 0.9
    assert [alpha.create(key="late-1").json()["sandboxID"]] == alpha.listed()


def test_a_slow_call_is_answered_in_the_end(alpha: E2B, host: Host) -> None:
    host.order(fault="slow", op="create", times=1, seconds=0.4)
    began = time.monotonic()
    assert alpha.create().status_code == 201
    assert time.monotonic() - began > 0.4


def test_a_hanging_call_is_never_answered(alpha: E2B, host: Host) -> None:
    host.order(fault="hang", op="create", times=1, seconds=0.5)
    began = time.monotonic()
    with pytest.raises(httpx.RemoteProtocolError):
        alpha.create()
    assert time.monotonic() - began > 0.4
    assert alpha.listed() == []


def test_redirect_garbage_and_huge_have_no_effect(alpha: E2B, host: Host) -> None:
    host.order(fault="redirect", op="create", times=1)
    answer = alpha.create()
    assert answer.status_code == 307
    assert answer.headers["location"].startswith("http://127.0.0.1:")
    assert not answer.headers["location"].startswith(host.url + "/")
    host.order(fault="garbage", op="create", times=1)
    answer = alpha.create()
    assert (answer.status_code, answer.text[:6]) == (200, "<html>")
    host.order(fault="huge", op="create", times=1)
    with alpha.http.stream("POST", "/v2/sandboxes", json={"templateID": "base"}) as stream:
        assert sum(len(chunk) for chunk in stream.iter_raw()) > 64 * 1024 * 1024
    assert alpha.listed() == []


def test_a_lagging_list_hides_the_young_and_shows_the_dead(alpha: E2B, host: Host) -> None:
    made = alpha.made(metadata={"lag": "here"})["sandboxID"]

    def listed() -> list[str]:
        return alpha.listed(metadata="lag=here")

    long = host.order(fault="list_lag", seconds=60)
    assert listed() == []
    assert alpha.http.get(f"/sandboxes/{made}").status_code == 200
    host.http.delete(f"/_host/faults/{long}")
    short = host.order(fault="list_lag", seconds=0.3)
    until(lambda: listed() == [made])
    host.http.delete(f"/_host/faults/{short}")
    alpha.http.delete(f"/sandboxes/{made}")
    assert listed() == []
    long = host.order(fault="list_lag", seconds=60)
    assert listed() == [made]
    host.http.delete(f"/_host/faults/{long}")
    host.order(fault="list_lag", seconds=0.3)
    until(lambda: listed() == [])


@pytest.mark.parametrize(
    ("op", "method", "path"),
    [
        ("get", "GET", "/sandboxes/{id}"),
        ("list", "GET", "/v2/sandboxes"),
        ("delete", "DELETE", "/sandboxes/{id}"),
        ("pause", "POST", "/sandboxes/{id}/pause"),
        ("resume", "POST", "/v2/sandboxes/{id}/connect"),
        ("timeout", "POST", "/sandboxes/{id}/timeout"),
        ("exec", "POST", "/sandbox/process.Process/List"),
        ("files", "GET", "/sandbox/files?path=x"),
        ("files", "POST", "/sandbox/filesystem.Filesystem/Stat"),
    ],
)
def test_a_fault_hits_its_operation_and_account_only(
    alpha: E2B, beta: E2B, host: Host, op: str, method: str, path: str
) -> None:
    sandbox = alpha.made()
    host.order(fault="error_500", op=op, account="alpha")
    url = path.format(id=sandbox["sandboxID"])
    answer = alpha.http.request(method, url, headers=alpha.into(sandbox))
    assert (answer.status_code, answer.json()["code"]) == (500, 500)
    assert alpha.create().status_code == 201
    assert beta.http.request(method, url).status_code != 500


def test_a_fault_ends_after_its_times_or_when_cancelled(alpha: E2B, host: Host) -> None:
    host.order(fault="error_500", op="*", times=2)
    assert [alpha.http.get("/v2/sandboxes").status_code for _ in range(3)] == [500, 500, 200]
    ordered = host.order(fault="error_500", op="list")
    assert alpha.http.get("/v2/sandboxes").status_code == 500
    assert host.http.delete(f"/_host/faults/{ordered}").status_code == 204
    assert host.http.delete(f"/_host/faults/{ordered}").status_code == 404
    assert alpha.http.get("/v2/sandboxes").status_code == 200


def test_a_seed_makes_chance_repeat_itself(alpha: E2B, host: Host) -> None:
    def outcomes() -> list[int]:
        ordered = host.order(fault="error_500", op="list", probability=0.5, seed=42)
        found = [alpha.http.get("/v2/sandboxes").status_code for _ in range(20)]
        host.http.delete(f"/_host/faults/{ordered}")
        return found

    first = outcomes()
    assert first == outcomes()
    assert set(first) == {200, 500}
