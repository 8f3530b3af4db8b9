"""Public fault reports of this field over HTTP: a real router, real processes, one deployment.

What each case is, and where else it is shown, is the table of `tests/architecture/test_cases.py`.
"""

from __future__ import annotations

import base64
import http.client
import json
import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import datetime
from typing import Any

import httpx
import pytest

from infra.local import pools
from tests.local.acceptance.deployment import Deployment, eventually
from tests.local.acceptance.test_failover import attempts, of
from tests.local.acceptance.vendor import KEY, Vendor

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("cases")]
POOLS = ["alpha", "beta", "gamma", "delta"]
ALPHA, BETA, GAMMA, DELTA = ({"only": [name]} for name in POOLS)
CANARY = "CANARY-7f3a-x9Qz"


@pytest.fixture(scope="module")
def vendor() -> Iterator[Vendor]:
    with Vendor.running() as running:
        yield running


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory, vendor: Vendor) -> Iterator[Deployment]:
    """The pools of a first start and one at that vendor, everything logged."""
    made = Deployment(tmp_path_factory.mktemp("cases"), POWERTOOLS_LOG_LEVEL="DEBUG")
    first = pools._first()
    first["pools"].append(vendor.pool())
    first["images"]["default"]["delta"] = first["images"]["default"]["alpha"]
    made.state.mkdir(mode=0o700)
    (made.state / "pools.json").write_text(json.dumps(first))
    try:
        yield made.start()
    finally:
        made.end()


@pytest.fixture
def cases(deployment: Deployment) -> Deployment:
    """All pools as they were at the start."""
    eventually(lambda: deployment.order() == POOLS, 10)
    return deployment


def url(made: str, *parts: str) -> str:
    return "/".join(("/v1/sandboxes", made, *parts))


def state(cases: Deployment, made: str) -> str:
    return str(cases.get(made)["state"])


def creates(cases: Deployment, after: int, account: str) -> list[str]:
    """Under which names a pool was asked to create."""
    return [call["identity"] for call in cases.calls(after, account=account, op="create")]


def looked(cases: Deployment, after: int) -> set[str]:
    """Which pools were asked for their lists."""
    return {call["account"] for call in cases.calls(after, op="list")}


@pytest.mark.case("A1")
@pytest.mark.parametrize("fault", ["late", "lost_answer"])
def test_a_lost_create_answer_and_a_repeat_are_one_sandbox(cases: Deployment, fault: str) -> None:
    key, last = uuid.uuid4().hex, cases.last_call()
    with cases.fault(fault, account="alpha", op="create", times=1, seconds=2):
        answers = [cases.create(key) for _ in range(2)]
    (made,) = {answer.json()["id"] for answer in answers}
    eventually(lambda: state(cases, made) == "running", 20, every=0.2)
    assert [one["id"] for one in of(cases, made)] == [cases.get(made)["instance_id"]]
    assert len(set(creates(cases, last, "alpha"))) == 1
    assert creates(cases, last, "beta") == []
    cases.destroy(made)


@pytest.mark.case("A2")
def test_a_503_behind_which_it_booted_is_served_from_there(cases: Deployment) -> None:
    last = cases.last_call()
    with cases.fault("made_503", account="alpha", op="create", times=1):
        answer = cases.create()
    assert (answer.status_code, attempts(answer)) == (201, [("alpha", "adopted", None)])
    assert len(of(cases, answer.json()["id"])) == 1
    assert cases.calls(last, account="beta") == []
    cases.destroy(answer.json()["id"])


@pytest.mark.case("A3")
def test_a_list_that_shows_the_dead_brings_nothing_back(cases: Deployment) -> None:
    box = cases.create().json()
    cases.destroy(box["id"])
    last = cases.last_call()
    with cases.fault("list_lag", seconds=60):  # lists show what went less than a minute ago
        cases.signal_restart()  # which reconciles
        eventually(lambda: looked(cases, last) >= {"alpha", "beta", "gamma"}, 10)
        time.sleep(0.5)
        assert state(cases, box["id"]) == "destroyed"
    assert cases.calls(last, op="delete") == []


@pytest.mark.case("A4")
def test_an_error_of_a_destroy_is_not_its_end(cases: Deployment) -> None:
    box = cases.create(provider=GAMMA).json()
    last = cases.last_call()
    orders = [("unauthorized", 1), ("rate_limited", 1), ("cut", 1)]
    for fault, times in orders:
        order = {"fault": fault, "account": "gamma", "op": "delete", "times": times}
        assert cases.host.post("/_host/faults", json=order).is_success
    first = cases.api.delete(url(box["id"]))
    assert (first.status_code, first.json()["state"]) == (202, "destroying")
    seen = []

    def gone() -> bool:
        alive = bool(cases.instances(id=box["instance_id"]))
        seen.append((state(cases, box["id"]), alive))
        return seen[-1][0] == "destroyed"

    eventually(gone, 15)
    assert ("destroyed", True) not in seen
    assert ("destroying", True) in seen
    assert len(cases.calls(last, account="gamma", op="delete")) == len(orders) + 1
    assert cases.api.delete(url(box["id"])).status_code == 204
    cases.host.delete("/_host/faults")
    cases.signal_restart()  # which verifies the pool that answered 401


@pytest.mark.case("A5")
def test_what_is_still_starting_is_destroyed_as_soon_as_its_provider_allows(
    cases: Deployment,
) -> None:
    last = cases.last_call()
    with cases.fault("slow", account="beta", op="create", seconds=4, times=1):
        body = {"ttl_seconds": 300, "provider": BETA}
        answer = cases.api.post("/v1/sandboxes", json=body, headers={"Prefer": "wait=1"})
    assert (answer.status_code, answer.json()["state"]) == (202, "starting")
    made = answer.json()["id"]
    with cases.fault("conflict", account="beta", op="delete"):
        assert cases.api.delete(url(made)).status_code == 202
        refused = cases.api.post(url(made, "exec"), json={"command": "true"})
        assert refused.status_code == 409
        eventually(lambda: len(cases.calls(last, account="beta", op="delete")) >= 2, 20)
        assert state(cases, made) == "destroying"
        assert len(of(cases, made)) == 1
    eventually(lambda: state(cases, made) == "destroyed", 10)
    assert of(cases, made) == []


@pytest.mark.case("A6")
def test_a_destroy_while_its_create_is_under_way_wins(cases: Deployment) -> None:
    key, last = uuid.uuid4().hex, cases.last_call()
    with cases.fault("slow", account="alpha", op="create", seconds=2), ThreadPoolExecutor() as pool:
        creating = pool.submit(cases.create, key)
        eventually(lambda: creates(cases, last, "alpha"), 5)
        made = cases.create(key).json()["id"]
        assert cases.api.delete(url(made)).status_code == 202
        answer = creating.result()
    assert (answer.status_code, answer.json()["code"]) == (409, "destroyed")
    eventually(lambda: state(cases, made) == "destroyed", 10)
    assert of(cases, made) == []
    assert cases.get(made)["started_at"] is None


@pytest.mark.case("A8")
def test_a_resume_leaves_the_end_where_it_was(cases: Deployment) -> None:
    box = cases.create(ttl_seconds=600).json()
    time.sleep(2.5)
    for verb in ("pause", "resume"):
        assert cases.api.post(url(box["id"], verb)).status_code == 200
    assert cases.get(box["id"])["expires_at"] == box["expires_at"]
    (instance,) = cases.instances(id=box["instance_id"])
    ours = datetime.fromisoformat(box["expires_at"]).timestamp()
    assert 59 <= instance["ends_ms"] / 1000 - ours <= 61.5  # the margin, and no new 600 s
    cases.destroy(box["id"])


@pytest.mark.case("A9")
def test_nobody_is_asked_round_a_policy_refusal(cases: Deployment) -> None:
    key, last = uuid.uuid4().hex, cases.last_call()
    with cases.fault("policy", account="alpha", op="create"):
        answers = [cases.create(key, labels={"case": key}) for _ in range(2)]
    assert [(a.status_code, a.json()["class"]) for a in answers] == [(403, "policy")] * 2
    assert answers[0].content == answers[1].content
    assert len(cases.calls(last)) == 1
    query = {"label": f"case={key}", "state": "failed"}
    assert len(cases.api.get("/v1/sandboxes", params=query).json()["data"]) == 1


@pytest.mark.case("A10")
def test_pools_that_failed_over_are_left_alone_until_they_have_cooled_down(
    cases: Deployment,
) -> None:
    seconds, began = 10, time.monotonic()
    for account in ("alpha", "beta"):
        order = {"fault": "rate_limited", "account": account, "op": "create", "times": 1}
        assert cases.host.post("/_host/faults", json={**order, "retry_after": seconds}).is_success
    made = [cases.create()]
    assert [pool for pool, _, _ in attempts(made[0])] == ["alpha", "beta", "gamma"]
    refused = time.monotonic()
    last = cases.last_call()
    made.append(cases.create())
    assert [pool for pool, _, _ in attempts(made[1])] == ["gamma"]
    cases.signal_restart()  # a new process reads the same end
    assert time.monotonic() < began + seconds
    assert cases.order() == ["gamma", "delta", "alpha", "beta"]
    made.append(cases.create())
    assert [pool for pool, _, _ in attempts(made[2])] == ["gamma"]
    assert [creates(cases, last, name) for name in ("alpha", "beta")] == [[], []]
    eventually(lambda: cases.order() == POOLS, seconds)
    assert began + seconds - 0.1 <= time.monotonic() <= refused + seconds + 1.5
    made.append(cases.create())
    assert [pool for pool, _, _ in attempts(made[3])] == ["alpha"]
    for answer in made:
        cases.destroy(answer.json()["id"])


@pytest.mark.case("A12")
def test_another_body_under_the_same_key_is_refused_at_every_stage(cases: Deployment) -> None:
    key, last = uuid.uuid4().hex, cases.last_call()
    with cases.fault("slow", account="alpha", op="create", seconds=1), ThreadPoolExecutor() as pool:
        creating = pool.submit(cases.create, key, labels={"a": "b", "c": "d"})
        eventually(lambda: creates(cases, last, "alpha"), 5)
        early = cases.create(key, ttl_seconds=60)
        first = creating.result()
    late = cases.create(key, ttl_seconds=60)
    cases.destroy(first.json()["id"])
    last = cases.last_call()
    ended = cases.create(key, ttl_seconds=60)
    for answer in (early, late, ended):
        assert (answer.status_code, answer.json()["code"]) == (422, "idempotency_key_reused")
    other = b'{ "labels" : {"c":"d","a":"b"},\n "ttl_seconds": 300.0 }'  # the same request
    headers = {"Idempotency-Key": key, "Content-Type": "application/json"}
    again = cases.api.post("/v1/sandboxes", content=other, headers=headers)
    assert (again.status_code, again.content) == (201, first.content)
    assert cases.calls(last) == []


@pytest.mark.case("A13")
def test_many_first_requests_at_once_are_one_sandbox_and_no_error(cases: Deployment) -> None:
    key, last = uuid.uuid4().hex, cases.last_call()
    ready = threading.Barrier(8)

    def create(_: int) -> httpx.Response:
        ready.wait(10)
        return cases.create(key)

    with ThreadPoolExecutor(8) as clients:
        answers = list(clients.map(create, range(8)))
    assert {answer.status_code for answer in answers} <= {201, 202}
    (made,) = {answer.json()["id"] for answer in answers}
    assert all("retry-after" in a.headers for a in answers if a.status_code == 202)
    assert len(creates(cases, last, "alpha")) == 1
    assert cases.create(key).status_code == 201
    cases.destroy(made)


@pytest.mark.case("A15")
def test_a_path_below_a_sandbox_never_lands_in_it(cases: Deployment) -> None:
    box = cases.create().json()
    last = cases.last_call()
    for below in (
        "/snapshots/snap_1",
        "/snapshots",
        "/unknown",
        "%2Fsnapshots",
        "/",
        "/../../" + box["id"] + "/x",
    ):
        answer = cases.api.delete(url(box["id"]) + below)
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), below
    assert state(cases, box["id"]) == "running"
    assert cases.calls(last) == []
    cases.destroy(box["id"])


@pytest.mark.case("A16")
@pytest.mark.parametrize("name", ["content-type", "Content-Type", "CONTENT-TYPE"])
def test_a_content_type_has_any_case_and_a_charset(cases: Deployment, name: str) -> None:
    def sent(kind: str) -> tuple[int, dict[str, Any]]:
        base = cases.api.base_url
        headers = {name: kind, "Authorization": cases.api.headers["Authorization"]}
        with closing(http.client.HTTPConnection(base.host, base.port or 80, timeout=30)) as client:
            client.request("POST", "/v1/sandboxes", b'{"ttl_seconds": 60}', headers)
            answer = client.getresponse()
            return answer.status, json.loads(answer.read())

    status, box = sent("Application/JSON; Charset=UTF-8")
    assert status == 201
    cases.destroy(box["id"])
    assert sent("text/plain")[0] == 415


@pytest.mark.case("A17")
def test_no_call_follows_a_redirect(cases: Deployment, vendor: Vendor) -> None:
    vendor.mode = "redirect"
    asked = len(vendor.asked)
    body = {"provider": DELTA}
    answer = cases.api.post("/v1/sandboxes", json=body, headers={"Prefer": "wait=2"})
    assert (answer.status_code, answer.json()["attempts"][0]["outcome"]) == (202, "unknown")
    assert cases.api.delete(url(answer.json()["id"])).status_code == 202
    assert len(vendor.asked) > asked
    assert vendor.elsewhere.visits == []
    vendor.mode = "none"
    box = cases.create().json()
    calls: list[tuple[str, str, Any]] = [
        ("POST", "exec", {"command": "true"}),
        ("GET", "files?path=/etc/hostname", None),
    ]
    for method, part, sent in calls:
        with cases.fault("redirect", account="alpha"):
            answer = cases.api.request(method, url(box["id"], part), json=sent)
        assert (answer.status_code, answer.json()["code"]) == (502, "provider_protocol"), part
    cases.destroy(box["id"])


@pytest.mark.case("A18")
def test_what_a_provider_quotes_shows_nowhere(cases: Deployment, vendor: Vendor) -> None:
    env, asked = {"TOKEN": CANARY}, len(vendor.asked)
    refused = cases.create(env=env, provider=DELTA)
    assert (refused.status_code, refused.json()["code"]) == (422, "provider_rejected")
    assert len(vendor.asked) == asked + 1
    ran = cases.api.post("/v1/sandboxes", json={"env": env}, headers={"Prefer": "wait=0"})
    eventually(lambda: state(cases, ran.json()["id"]) == "running", 5)
    shown = [refused.text, ran.text, str(refused.headers), json.dumps(cases.calls())]
    kept = [path for path in cases.state.iterdir() if path.is_file()]
    logs = {path.name: path.stat().st_size for path in kept}
    assert logs["router.log"] > 0
    assert logs["router.db"] > 0
    data = b"\0".join([*(text.encode() for text in shown), *(path.read_bytes() for path in kept)])
    data = data.replace(
        json.dumps(KEY).encode(), b""
    )  # as the operator wrote it, in the pools' file
    for secret in (CANARY, KEY):
        coded = base64.b64encode(secret.encode()).rstrip(b"=")[2:-2]
        assert [form for form in (secret[:10].encode(), coded) if form in data] == []
    cases.destroy(ran.json()["id"])


@pytest.mark.case("A19")
@pytest.mark.parametrize("pool", ["alpha", "gamma"])
def test_a_timeout_ends_the_command_and_its_children_when_it_is_over(
    cases: Deployment, pool: str
) -> None:
    box = cases.create(provider={"only": [pool]}).json()
    last, began = cases.last_call(), time.monotonic()
    command = {"command": "echo a; sleep 77 & sleep 77", "timeout_seconds": 2}
    answer = cases.api.post(url(box["id"], "exec"), json=command)
    assert 2 <= time.monotonic() - began <= 3
    assert (answer.status_code, answer.json()["timed_out"]) == (200, True), answer.text
    assert answer.json()["exit_code"] is None
    starts = [c for c in cases.calls(last) if c["path"].endswith(("/Start", "/command"))]
    assert len([c for c in starts if c["method"] == "POST"]) == 1
    look = {"command": "cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c 'sleep 7[7]'"}
    eventually(
        lambda: cases.api.post(url(box["id"], "exec"), json=look).json()["stdout"] == "0\n", 3
    )
    cases.destroy(box["id"])


TEXT = "café 日本語 🚀\r"


@pytest.mark.case("A20")
@pytest.mark.parametrize(("pool", "tail"), [("alpha", b"\xff."), ("gamma", b".\n")])
def test_characters_cut_by_the_border_of_a_chunk_arrive_whole(
    cases: Deployment, pool: str, tail: bytes
) -> None:
    said = TEXT.encode() + tail
    words = " ".join(f"{byte:03o}" for byte in said)
    command = {"command": f'for b in {words}; do printf "\\\\$b"; sleep 0.01; done'}
    box = cases.create(provider={"only": [pool]}).json()
    told = cases.api.post(url(box["id"], "exec"), json=command).json()
    assert exact(told["stdout"], told.get("stdout_b64")) == said
    stream = {"Accept": "text/event-stream"}
    with cases.api.stream("POST", url(box["id"], "exec"), json=command, headers=stream) as answer:
        lines = list(answer.iter_lines())
    data = [json.loads(line[6:]) for line in lines if line.startswith("data: ")]
    assert b"".join(exact(d["text"], d.get("b64")) for d in data if "text" in d) == said
    assert data[-1]["exit_code"] == 0
    cases.destroy(box["id"])


def exact(text: str, coded: str | None) -> bytes:
    return text.encode() if coded is None else base64.b64decode(coded)
