"""E2B's wire: identity of creates, whose sandbox it is, refusals, errors in the vendor's shape."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.local.host.hosting import E2B, Host


def test_one_idempotency_key_makes_one_sandbox(alpha: E2B) -> None:
    first, second = alpha.create(key="try-1"), alpha.create(key="try-1")
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json() == second.json()
    assert alpha.listed() == [first.json()["sandboxID"]]


def test_the_same_key_with_another_body_is_a_mismatch(alpha: E2B) -> None:
    assert alpha.create(key="try-2").status_code == 201
    other = alpha.create(key="try-2", timeout=61)
    assert (other.status_code, other.json()["error_code"]) == (409, "idempotency_request_mismatch")
    assert other.headers["Should-Retry"] == "false"


def test_keys_of_two_accounts_have_nothing_in_common(alpha: E2B, beta: E2B) -> None:
    one, two = alpha.create(key="same"), beta.create(key="same", timeout=90)
    assert (one.status_code, two.status_code) == (201, 201)
    assert one.json()["sandboxID"] != two.json()["sandboxID"]


def test_repeats_in_flight_are_told_so_and_make_nothing(alpha: E2B) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: alpha.create(key="try-3"), range(8)))
    kinds = {answer.status_code for answer in answers}
    assert kinds <= {201, 409}
    assert 201 in kinds
    for answer in answers:
        if answer.status_code == 409:
            assert answer.json()["error_code"] == "idempotency_in_progress"
            assert answer.headers["Should-Retry"] == "true"
    assert len(alpha.listed()) == 1


def test_a_failed_create_frees_its_key(alpha: E2B) -> None:
    assert alpha.create(key="try-4", templateID="nothing").status_code == 404
    assert alpha.create(key="try-4").status_code == 201


@pytest.mark.parametrize("key", ["UPPER", "under_score", "x" * 256, "a b"])
def test_a_malformed_key_is_refused(alpha: E2B, key: str) -> None:
    assert alpha.create(key=key).status_code == 400


def test_another_accounts_sandbox_does_not_exist(alpha: E2B, beta: E2B) -> None:
    instance_id = alpha.made()["sandboxID"]
    path = f"/sandboxes/{instance_id}"
    assert beta.http.get(path).status_code == 404
    assert beta.http.delete(path).status_code == 404
    assert beta.http.post(path + "/pause", json={}).status_code == 404
    assert beta.http.post(path + "/timeout", json={"timeout": 1}).status_code == 404
    assert beta.http.post(f"/v2{path}/connect", json={"timeout": 1}).status_code == 404
    assert beta.listed() == []
    assert alpha.http.get(path).status_code == 200


@pytest.mark.parametrize("headers", [{}, {"X-API-Key": "e2b_none"}], ids=["none", "unknown"])
def test_without_an_accounts_key_nothing_is_answered(alpha: E2B, headers: dict[str, str]) -> None:
    del alpha.http.headers["X-API-Key"]
    for method, path in (("GET", "/v2/sandboxes"), ("POST", "/v2/sandboxes"), ("GET", "/x")):
        answer = alpha.http.request(method, path, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (401, 401)


REFUSED: dict[str, dict[str, Any]] = {
    "no template": {"templateID": ""},
    "text as timeout": {"timeout": "60"},
    "negative timeout": {"timeout": -1},
    "timeout beyond a day": {"timeout": 86401},
    "metadata of numbers": {"metadata": {"n": 1}},
    "environment name with =": {"envVars": {"A=B": "x"}},
    "egress allowed by name": {"network": {"allowOut": ["example.com"]}},
    "egress denied in part": {"network": {"denyOut": ["10.0.0.0/8"]}},
    "egress proxy": {"network": {"egressProxy": {"address": "127.0.0.1:1"}}},
    "header injection": {"network": {"rules": {"a.example": [{}]}}},
    "host mask": {"network": {"maskRequestHost": "x"}},
    "volumes": {"volumeMounts": [{"name": "v", "path": "/v"}]},
    "identity": {"iam": {"tokens": [{}]}},
    "mcp": {"mcp": {"server": {}}},
    "auto-resume of a disk": {"autoResume": {"enabled": True}, "autoPauseMemory": False},
}


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_done_is_refused_and_makes_nothing(alpha: E2B, body: dict[str, Any]) -> None:
    answer = alpha.create(**body)
    assert (answer.status_code, answer.json()["code"]) == (400, 400), answer.text
    assert alpha.listed() == []


def test_an_unknown_template_is_not_found(alpha: E2B) -> None:
    answer = alpha.create(templateID="no-such")
    assert (answer.status_code, answer.json()["message"]) == (404, "template 'no-such' not found")


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null"])
def test_a_body_that_is_no_object_is_refused(alpha: E2B, content: bytes) -> None:
    assert alpha.http.post("/v2/sandboxes", content=content).status_code == 400


@pytest.mark.parametrize(
    ("method", "rest"),
    [("POST", "/fork"), ("PUT", "/network"), ("GET", "/logs")],
)
def test_operations_that_are_missing_say_so(alpha: E2B, method: str, rest: str) -> None:
    path = f"/sandboxes/{alpha.made()['sandboxID']}{rest}"
    answer = alpha.http.request(method, path, json={})
    assert (answer.status_code, answer.json()["code"]) == (501, 501)


def test_the_old_create_has_fifteen_seconds_and_no_token(alpha: E2B) -> None:
    made = alpha.http.post("/sandboxes", json={"templateID": "base"}).json()
    assert "envdAccessToken" not in made
    shown = alpha.host.instance(made["sandboxID"])
    assert 14_000 <= shown["ends_ms"] - shown["created_ms"] <= 15_100
    assert alpha.run(made, "echo open") == (0, "open\n")
    secured = alpha.http.post("/sandboxes", json={"templateID": "base", "secure": True}).json()
    assert secured["envdAccessToken"]


def test_only_its_token_opens_a_sandbox(alpha: E2B) -> None:
    one, other = alpha.made(), alpha.made()
    swapped = {**one, "envdAccessToken": other["envdAccessToken"]}
    for wrong in (swapped, {**one, "envdAccessToken": ""}):
        answer = alpha.call(wrong, "process.Process/List")
        assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")
        read = alpha.http.get("/sandbox/files?path=x", headers=alpha.into(wrong))
        assert (read.status_code, read.json()["code"]) == (401, 401)


def test_no_other_user_than_the_one_there_is(alpha: E2B) -> None:
    sandbox = alpha.made()
    answer = alpha.http.get("/sandbox/files?path=x&username=root", headers=alpha.into(sandbox))
    assert (answer.status_code, answer.json()["code"]) == (401, 401)


def test_ports_closed_to_the_public_come_with_a_token(alpha: E2B) -> None:
    closed = alpha.made(network={"allowPublicTraffic": False})
    assert closed["trafficAccessToken"]
    assert alpha.made()["trafficAccessToken"] is None


def test_a_gone_sandbox_answers_as_the_edge_does(alpha: E2B) -> None:
    sandbox = alpha.made()
    assert alpha.http.delete(f"/sandboxes/{sandbox['sandboxID']}").status_code == 204
    assert alpha.http.delete(f"/sandboxes/{sandbox['sandboxID']}").status_code == 404
    answer = alpha.http.get("/sandbox/health", headers=alpha.into(sandbox))
    assert (answer.status_code, answer.json()["code"]) == (502, 502)
    assert "was not found" in answer.json()["message"]


def test_a_sandbox_is_reached_by_host_name_too(alpha: E2B) -> None:
    sandbox = alpha.made()
    name = {"host": f"49983-{sandbox['sandboxID']}.sandboxes.example"}
    assert alpha.http.get("/sandbox/health", headers=name).status_code == 204


def test_a_paused_sandbox_with_auto_resume_wakes_at_traffic(alpha: E2B) -> None:
    sleepy, lazy = alpha.made(autoPause=True, autoResume={"enabled": True}), alpha.made()
    for one in (sleepy, lazy):
        assert alpha.http.post(f"/sandboxes/{one['sandboxID']}/pause").status_code == 204
        again = alpha.http.post(f"/sandboxes/{one['sandboxID']}/pause")
        assert (again.status_code, again.json()["code"]) == (409, 409)
    assert alpha.run(sleepy, "echo awake") == (0, "awake\n")
    assert alpha.http.get("/sandbox/health", headers=alpha.into(lazy)).status_code == 502


def test_a_pause_without_memory_drops_processes_and_keeps_files(alpha: E2B) -> None:
    sandbox = alpha.made()
    alpha.run(sandbox, "echo kept > file; nohup sleep 1000 > /dev/null 2>&1 &")
    path = f"/sandboxes/{sandbox['sandboxID']}"
    assert alpha.http.post(path + "/pause", json={"memory": False}).status_code == 204
    assert alpha.http.post(f"/v2{path}/connect", json={"timeout": 60}).status_code == 201
    code, output = alpha.run(sandbox, "cat file; pgrep -c sleep")
    assert (code, output) == (1, "kept\n0\n")


def test_lists_come_in_order_by_state_and_template(alpha: E2B) -> None:
    first = alpha.made()["sandboxID"]
    time.sleep(0.005)
    second = alpha.made(templateID="base-1x1")["sandboxID"]
    assert alpha.listed() == [second, first]
    assert alpha.listed(order="asc") == [first, second]
    assert alpha.listed(template="base-1x1") == [second]
    started = alpha.http.get(f"/sandboxes/{second}").json()["startedAt"]
    assert alpha.listed(startedAfter=started) == [second]
    alpha.http.post(f"/sandboxes/{first}/pause")
    assert alpha.listed(state="paused") == [first]
    assert alpha.listed(state="running,paused", limit=1) == [second]
    answer = alpha.http.get("/v2/sandboxes", params={"limit": 1})
    assert answer.headers["X-Total-Running"] == "1"
    after = {"nextToken": answer.headers["X-Next-Token"]}
    rest = alpha.http.get("/v2/sandboxes", params=after)
    assert [one["sandboxID"] for one in rest.json()] == [first]
    assert "X-Next-Token" not in rest.headers


@pytest.mark.parametrize(
    "params",
    [{"limit": 0}, {"limit": 101}, {"limit": "x"}, {"state": "dead"}, {"order": "up"},
     {"nextToken": "?"}, {"startedAfter": "yesterday"}],
    ids=str,
)  # fmt: skip
def test_a_list_with_bad_parameters_is_refused(alpha: E2B, params: dict[str, Any]) -> None:
    answer = alpha.http.get("/v2/sandboxes", params=params)
    assert (answer.status_code, answer.json()["code"]) == (400, 400)


def test_refreshing_only_extends(alpha: E2B) -> None:
    instance_id = alpha.made(timeout=100)["sandboxID"]
    path = f"/sandboxes/{instance_id}/refreshes"
    before = alpha.host.instance(instance_id)["ends_ms"]
    assert alpha.http.post(path, json={"duration": 10}).status_code == 204
    assert alpha.host.instance(instance_id)["ends_ms"] == before
    assert alpha.http.post(path, json={"duration": 1000}).status_code == 204
    assert alpha.host.instance(instance_id)["ends_ms"] > before + 800_000


def test_the_quota_of_an_account_is_told_in_the_vendors_words(new_host: Any) -> None:
    account = {"name": "alpha", "dialect": "e2b", "key": "e2b_alpha-key", "max_instances": 1}
    host: Host = new_host(config={"accounts": [account]})
    client = E2B(host)
    client.made()
    answer = client.create()
    client.close()
    assert answer.status_code == 429
    assert "maximum number of concurrent E2B sandboxes" in answer.json()["message"]
    assert "Retry-After" not in answer.headers
