"""What a client does in a day, against the deployed stacks."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.cloud.e2e.deployment import Cloud


@pytest.fixture(scope="module")
def cloud(enforced: Cloud) -> Cloud:
    return enforced


@pytest.fixture(scope="module")
def box(cloud: Cloud) -> Iterator[dict[str, Any]]:
    """One running sandbox for the tests that only use it."""
    cloud.rested()
    answer = cloud.create(size="2x4", env={"GREETING": "hi"}, labels={"team": "a"})
    assert answer.status_code == 201, answer.text
    yield answer.json()
    cloud.destroy(answer.json()["id"])


def test_a_created_sandbox_runs_at_the_first_pool(cloud: Cloud, box: dict[str, Any]) -> None:
    assert (box["state"], box["pool_id"], box["provider"]) == ("running", "alpha", "e2b")
    (instance,) = cloud.instances(box["id"])
    assert (instance["id"], instance["account"]) == (box["instance_id"], "alpha")
    assert instance["metadata"]["team"] == "a"


def test_a_command_runs_and_answers_in_one_piece(cloud: Cloud, box: dict[str, Any]) -> None:
    body = {"command": 'echo "$GREETING"; cat; exit 3', "stdin": "in"}
    answer = cloud.api.post(f"/v1/sandboxes/{box['id']}/exec", json=body)
    assert answer.status_code == 200, answer.text
    result = answer.json()
    assert (result["exit_code"], result["stdout"], result["timed_out"]) == (3, "hi\nin", False)
    assert 0 <= float(answer.headers["x-router-overhead-ms"]) < 10_000


def test_a_deployment_without_streaming_says_so(cloud: Cloud, box: dict[str, Any]) -> None:
    """The emulator answers 500 to every STREAM method, so this lane deploys `streaming=off`."""
    answer = cloud.api.post(
        f"/v1/sandboxes/{box['id']}/exec",
        json={"command": "true"},
        headers={"Accept": "text/event-stream"},
    )
    assert (answer.status_code, answer.json()["code"]) == (501, "streaming_off"), answer.text


def test_files_come_back_byte_for_byte(cloud: Cloud, box: dict[str, Any]) -> None:
    url, path = f"/v1/sandboxes/{box['id']}/files", {"path": "/tmp/deep/er/ünï code.bin"}
    data = bytes(range(256)) * 4000
    kind = {"Content-Type": "application/octet-stream"}
    put = cloud.api.put(url, params=path, content=data, headers=kind)
    assert put.status_code == 204, put.text
    got = cloud.api.get(url, params=path)
    assert (got.status_code, got.content) == (200, data)
    listed = cloud.api.get(
        f"/v1/sandboxes/{box['id']}/directories", params={"path": "/tmp/deep/er"}
    )
    assert [(e["name"], e["size"]) for e in listed.json()["data"]] == [("ünï code.bin", len(data))]
    assert cloud.api.delete(url, params=path).status_code == 204
    gone = cloud.api.get(url, params=path)
    assert (gone.status_code, gone.json()["code"]) == (404, "file_not_found")


def test_a_list_finds_it_by_label(cloud: Cloud, box: dict[str, Any]) -> None:
    for label, found in (("team=a", True), ("team=b", False)):
        page = cloud.api.get("/v1/sandboxes", params={"label": label}).json()
        assert (box["id"] in [one["id"] for one in page["data"]]) is found


def test_a_replay_is_the_same_answer_byte_for_byte(cloud: Cloud) -> None:
    key = uuid.uuid4().hex
    first = cloud.create(key)
    assert first.status_code == 201, first.text
    last = cloud.last_call()
    replay = cloud.create(key)
    assert (replay.status_code, replay.content) == (201, first.content)
    assert replay.headers["idempotent-replayed"] == "true"
    assert cloud.calls(last) == []
    other = cloud.create(key, ttl_seconds=301)
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")
    cloud.destroy(first.json()["id"])


def test_failover_goes_on_behind_a_202(cloud: Cloud) -> None:
    """The create hands over to the queue at once; a worker is refused and asks the next pool."""
    cloud.rested()
    with cloud.fault("capacity", account="alpha", op="create"):
        answer = cloud.api.post(
            "/v1/sandboxes",
            json={"ttl_seconds": 300, "env": {"A": "1"}},
            headers={"Prefer": "wait=0"},
        )
        assert (answer.status_code, answer.json()["state"]) == (202, "starting"), answer.text
        made = answer.json()["id"]
        assert answer.headers["location"] == f"/live/v1/sandboxes/{made}"
        box = cloud.reaches(made, "running", 30)
    assert [(a["pool_id"], a["outcome"]) for a in box["attempts"]] == [
        ("alpha", "refused"),
        ("beta", "created"),
    ]
    assert [one["account"] for one in cloud.instances(made)] == ["beta"]
    result = cloud.api.post(f"/v1/sandboxes/{made}/exec", json={"command": "echo $A"})
    assert result.json()["stdout"] == "1\n"  # sealed for the way, and opened there
    cloud.destroy(made)


def test_a_destroyed_sandbox_is_gone_at_the_provider(cloud: Cloud) -> None:
    made = cloud.create().json()
    answer = cloud.api.delete(f"/v1/sandboxes/{made['id']}")
    assert answer.status_code in (202, 204), answer.text
    assert cloud.reaches(made["id"], "destroyed", 30)["state"] == "destroyed"
    assert cloud.instances(made["id"]) == []
    assert cloud.api.delete(f"/v1/sandboxes/{made['id']}").status_code == 204
    refused = cloud.api.post(f"/v1/sandboxes/{made['id']}/exec", json={"command": "true"})
    assert refused.status_code == 409


def test_nothing_of_another_tenant_is_there(cloud: Cloud, box: dict[str, Any]) -> None:
    headers = {"Authorization": f"Bearer {cloud.add_key('stranger', ['sandboxes:read'])}"}
    other = cloud.api.get(f"/v1/sandboxes/{box['id']}", headers=headers)
    missing = cloud.api.get(f"/v1/sandboxes/sbx-{'a' * 26}", headers=headers)
    path = cloud.api.get("/v1/nothing", headers=headers)
    assert without_id(other) == without_id(missing) == without_id(path)
    assert other.status_code == 404
    refused = cloud.api.delete(f"/v1/sandboxes/{box['id']}", headers=headers)
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")


def without_id(answer: httpx.Response) -> dict[str, Any]:
    """A problem document without what differs between two calls."""
    assert answer.headers["content-type"] == "application/problem+json"
    document: dict[str, Any] = answer.json()
    assert document.pop("request_id") == answer.headers["x-request-id"]
    return document


@pytest.mark.parametrize("given", [None, "Bearer", "Bearer sbr_none", "Basic abc"])
def test_without_a_valid_key_everything_is_401(cloud: Cloud, given: str | None) -> None:
    headers = {} if given is None else {"Authorization": given}
    with httpx.Client(trust_env=False, timeout=30) as anybody:
        answer = anybody.get(f"{cloud.url}/v1/sandboxes", headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated"), answer.text
    assert answer.headers["www-authenticate"] == "Bearer"


def test_health_and_the_document_are_public(cloud: Cloud) -> None:
    with httpx.Client(trust_env=False, timeout=30) as anybody:
        assert anybody.get(f"{cloud.url}/v1/health").json() == {"status": "ok"}
        document = anybody.get(f"{cloud.url}/v1/openapi.json").json()
    assert document["openapi"].startswith("3.1")
