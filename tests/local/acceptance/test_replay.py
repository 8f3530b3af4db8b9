"""One key, one sandbox: whatever a client repeats."""

from __future__ import annotations

import threading
import uuid

import httpx

from tests.local.acceptance.deployment import Deployment, eventually


def test_a_replay_is_the_same_answer_byte_for_byte_and_asks_no_provider(
    shared: Deployment,
) -> None:
    key = uuid.uuid4().hex
    first = shared.create(key, labels={"a": "b"})
    assert first.status_code == 201
    last = shared.last_call()
    for again in (key, f'"{key}"'):
        replay = shared.create(again, labels={"a": "b"})
        assert (replay.status_code, replay.content) == (201, first.content)
        assert replay.headers["idempotent-replayed"] == "true"
    assert shared.calls(after=last) == []
    shared.destroy(first.json()["id"])
    after = shared.create(key, labels={"a": "b"})
    assert (after.status_code, after.content) == (201, first.content)


def test_the_same_key_with_another_body_is_refused(shared: Deployment) -> None:
    key = uuid.uuid4().hex
    first = shared.create(key)
    other = shared.create(key, ttl_seconds=301)
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")
    shared.destroy(first.json()["id"])


def test_a_replay_in_flight_is_202_with_the_same_sandbox(shared: Deployment) -> None:
    key = uuid.uuid4().hex
    answers: list[httpx.Response] = []
    last = shared.last_call()
    with shared.fault("slow", op="create", times=1, seconds=3):
        thread = threading.Thread(target=lambda: answers.append(shared.create(key)))
        thread.start()
        eventually(lambda: shared.calls(after=last, op="create"), 5)
        early = shared.create(key)
        other = shared.create(key, ttl_seconds=301)
        thread.join()
    assert early.status_code == 202, early.text
    assert early.json()["state"] == "starting"
    assert early.headers["location"] == f"/v1/sandboxes/{early.json()['id']}"
    assert other.status_code == 422
    assert answers[0].status_code == 201
    assert answers[0].json()["id"] == early.json()["id"]
    assert len(shared.calls(after=last, op="create")) == 1
    shared.destroy(early.json()["id"])


def test_without_waiting_a_create_is_202_and_runs_soon(shared: Deployment) -> None:
    answer = shared.api.post(
        "/v1/sandboxes", json={"env": {"A": "1"}}, headers={"Prefer": "wait=0"}
    )
    assert (answer.status_code, answer.json()["state"]) == (202, "starting"), answer.text
    assert answer.headers["preference-applied"] == "wait=0"
    made = answer.json()["id"]
    eventually(lambda: shared.get(made)["state"] == "running", 5)
    shared.destroy(made)
