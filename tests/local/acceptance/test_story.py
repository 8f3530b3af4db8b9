"""What a client does in a day, over HTTP, against real processes."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.local.acceptance.deployment import Deployment, eventually


@pytest.fixture(scope="module")
def box(shared: Deployment) -> Iterator[dict[str, Any]]:
    """One running sandbox for the tests that only use it."""
    answer = shared.create(size="2x4", env={"GREETING": "hi"}, labels={"team": "a"})
    assert answer.status_code == 201, answer.text
    yield answer.json()
    shared.destroy(answer.json()["id"])


def execute(shared: Deployment, box: dict[str, Any], **body: Any) -> httpx.Response:
    return shared.api.post(f"/v1/sandboxes/{box['id']}/exec", json=body)


def test_a_created_sandbox_runs_and_says_where_and_for_how_much(
    shared: Deployment, box: dict[str, Any]
) -> None:
    assert box["state"] == "running"
    assert (box["pool_id"], box["provider"]) == ("alpha", "e2b")
    assert box["size"]["vcpu"] == 2
    assert box["size"]["memory_gib"] == 4
    assert box["isolation"] == shared.announced["isolation"]
    assert box["env_names"] == ["GREETING"]
    assert box["cost"]["per_hour"] > 0
    assert [c["pool_id"] for c in box["route"]] == ["alpha", "beta", "gamma"]
    assert [a["outcome"] for a in box["attempts"]] == ["created"]
    (instance,) = shared.instances(id=box["instance_id"])
    assert instance["account"] == "alpha"
    assert instance["metadata"]["constal-sandbox-id"] == box["id"]
    assert instance["metadata"]["team"] == "a"


def test_every_routed_answer_says_its_request_and_its_overhead(
    shared: Deployment, box: dict[str, Any]
) -> None:
    answer = execute(shared, box, command="true")
    uuid.UUID(answer.headers["x-request-id"])
    assert 0 <= float(answer.headers["x-router-overhead-ms"]) < 2000


def test_commands_run_with_env_input_and_an_exit_code(
    shared: Deployment, box: dict[str, Any]
) -> None:
    answer = execute(shared, box, command='echo "$GREETING"; cat; echo no >&2; exit 3', stdin="in")
    assert answer.status_code == 200, answer.text
    result = answer.json()
    assert (result["exit_code"], result["stdout"], result["stderr"]) == (3, "hi\nin", "no\n")
    assert not result["timed_out"]
    vector = execute(shared, box, argv=["printf", "%s|", "a b", "c'd"]).json()
    assert (vector["exit_code"], vector["stdout"]) == (0, "a b|c'd|")


def test_a_command_over_its_time_is_ended_and_says_so(
    shared: Deployment, box: dict[str, Any]
) -> None:
    result = execute(shared, box, command="echo a; sleep 30", timeout_seconds=1).json()
    assert (result["timed_out"], result["stdout"]) == (True, "a\n")
    assert result["exit_code"] is None


def test_files_come_back_byte_for_byte(shared: Deployment, box: dict[str, Any]) -> None:
    url = f"/v1/sandboxes/{box['id']}/files"
    path = {"path": "/tmp/deep/er/ünï code.bin"}
    data = bytes(range(256)) * 100
    put = shared.api.put(
        url, params=path, content=data, headers={"Content-Type": "application/octet-stream"}
    )
    assert put.status_code == 204, put.text
    got = shared.api.get(url, params=path)
    assert (got.status_code, got.content) == (200, data)
    listed = shared.api.get(
        f"/v1/sandboxes/{box['id']}/directories", params={"path": "/tmp/deep/er"}
    )
    assert [(e["name"], e["kind"], e["size"]) for e in listed.json()["data"]] == [
        ("ünï code.bin", "file", len(data))
    ]
    assert shared.api.delete(url, params=path).status_code == 204
    gone = shared.api.get(url, params=path)
    assert (gone.status_code, gone.json()["code"]) == (404, "file_not_found")


def test_lists_find_it_by_label(shared: Deployment, box: dict[str, Any]) -> None:
    for query, found in [({"label": "team=a"}, True), ({"label": "team=b"}, False)]:
        page = shared.api.get("/v1/sandboxes", params=query).json()
        assert (box["id"] in [one["id"] for one in page["data"]]) is found


def test_labels_and_lifetime_can_be_changed(shared: Deployment, box: dict[str, Any]) -> None:
    url = f"/v1/sandboxes/{box['id']}"
    before = shared.get(box["id"])
    refused = shared.api.patch(url, json={"ttl_seconds": 60})
    assert refused.status_code == 400, refused.text
    later = shared.api.patch(url, json={"ttl_seconds": 900, "labels": {"team": "a", "x": "y"}})
    assert later.status_code == 200, later.text
    assert later.json()["expires_at"] > before["expires_at"]
    assert later.json()["labels"] == {"team": "a", "x": "y"}
    sooner = shared.api.patch(url, json={"ttl_seconds": 300, "shorten": True})
    assert sooner.json()["expires_at"] < later.json()["expires_at"]


def test_a_paused_sandbox_resumes_with_its_memory(shared: Deployment, box: dict[str, Any]) -> None:
    url = f"/v1/sandboxes/{box['id']}"
    execute(shared, box, command="echo kept > /tmp/kept")
    paused = shared.api.post(f"{url}/pause")
    assert (paused.status_code, paused.json()["state"]) == (200, "paused"), paused.text
    assert paused.json()["kept"] == "memory"
    refused = execute(shared, box, command="true")
    assert (refused.status_code, refused.json()["code"]) == (409, "not_running")
    resumed = shared.api.post(f"{url}/resume")
    assert (resumed.status_code, resumed.json()["state"]) == (200, "running"), resumed.text
    assert execute(shared, box, command="cat /tmp/kept").json()["stdout"] == "kept\n"


def test_a_port_is_private_and_serves_with_its_headers(
    shared: Deployment, box: dict[str, Any]
) -> None:
    url = f"/v1/sandboxes/{box['id']}/ports/8765"
    endpoint = shared.api.post(url)
    assert endpoint.status_code == 200, endpoint.text
    assert endpoint.json()["visibility"] == "private"
    assert endpoint.json()["url"].startswith("http")
    assert shared.api.delete(url).status_code == 204


def test_a_dry_run_names_the_candidates_and_asks_nobody(shared: Deployment) -> None:
    last = shared.last_call()
    route = shared.api.post("/v1/route", json={"size": "2x4:cheap"})
    assert route.status_code == 200, route.text
    assert {c["pool_id"] for c in route.json()["candidates"]} == {"alpha", "beta", "gamma"}
    assert shared.calls(after=last) == []


def test_the_catalog_is_what_the_pools_offer(shared: Deployment) -> None:
    for name in ("providers", "sizes", "regions", "images"):
        answer = shared.api.get(f"/v1/{name}")
        assert answer.status_code == 200, answer.text
    images = shared.api.get("/v1/images").json()["data"]
    assert "default" in [image["name"] for image in images]


def test_a_destroyed_sandbox_is_gone_at_the_provider_and_stays_destroyed(
    shared: Deployment,
) -> None:
    made = shared.create().json()
    answer = shared.api.delete(f"/v1/sandboxes/{made['id']}")
    assert answer.status_code in (202, 204)
    eventually(lambda: shared.get(made["id"])["state"] == "destroyed", 10)
    assert shared.instances(id=made["instance_id"]) == []
    again = shared.api.delete(f"/v1/sandboxes/{made['id']}")
    assert (again.status_code, again.content) == (204, b"")
    listed = shared.api.get("/v1/sandboxes").json()["data"]
    assert made["id"] not in [one["id"] for one in listed]
    assert execute(shared, made, command="true").status_code == 409
