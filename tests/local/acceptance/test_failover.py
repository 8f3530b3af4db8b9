"""What providers do wrong, and what the client sees of it: one sandbox, or a reason."""

from __future__ import annotations

import uuid
from typing import Any

import httpx
import pytest

from tests.local.acceptance.conftest import Deploy
from tests.local.acceptance.deployment import Deployment, eventually


def of(deployment: Deployment, sandbox_id: str) -> list[dict[str, Any]]:
    """The living instances of a sandbox, whatever attempt made them."""
    found = deployment.instances()
    return [one for one in found if one["metadata"]["constal-sandbox-id"] == sandbox_id]


def attempts(answer: httpx.Response) -> list[tuple[str, str, str | None]]:
    return [(a["pool_id"], a["outcome"], a["class"]) for a in answer.json()["attempts"]]


@pytest.mark.parametrize(
    ("fault", "klass"),
    [("capacity", "capacity"), ("rate_limited", "rate_limited"), ("quota", "quota")],
)
def test_a_pool_that_cannot_is_passed_over_and_the_answer_shows_both(
    shared: Deployment, fault: str, klass: str
) -> None:
    with shared.fault(fault, account="alpha", op="create"):
        answer = shared.create()
    assert answer.status_code == 201, answer.text
    assert attempts(answer) == [("alpha", "refused", klass), ("beta", "created", None)]
    assert answer.json()["pool_id"] == "beta"
    assert [one["account"] for one in of(shared, answer.json()["id"])] == ["beta"]
    shared.destroy(answer.json()["id"])


@pytest.mark.parametrize(
    ("fault", "status", "code"),
    [("forbidden", 403, "provider_permission"), ("invalid", 422, "provider_rejected")],
)
def test_a_final_refusal_is_answered_and_replayed_and_no_other_pool_is_asked(
    shared: Deployment, fault: str, status: int, code: str
) -> None:
    key, last = uuid.uuid4().hex, shared.last_call()
    with shared.fault(fault, account="alpha", op="create"):
        answer = shared.create(key)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert len(shared.calls(after=last)) == 1
    replay = shared.create(key)
    assert (replay.status_code, replay.content) == (status, answer.content)
    assert replay.headers["idempotent-replayed"] == "true"
    assert len(shared.calls(after=last)) == 1


def test_without_fallbacks_only_the_first_candidate_is_asked(shared: Deployment) -> None:
    last = shared.last_call()
    with shared.fault("quota", account="alpha", op="create"):
        answer = shared.create(provider={"allow_fallbacks": False})
    assert answer.status_code == 503
    assert {pool for pool, _, _ in attempts(answer)} == {"alpha"}
    assert {call["account"] for call in shared.calls(after=last)} == {"alpha"}


def test_when_no_pool_can_the_answer_is_503_with_every_attempt_and_the_key_is_free(
    shared: Deployment,
) -> None:
    key = uuid.uuid4().hex
    with shared.fault("quota", op="create"):
        answer = shared.create(key)
    assert (answer.status_code, answer.json()["code"]) == (503, "no_pool_available")
    assert attempts(answer) == [(pool, "refused", "quota") for pool in ("alpha", "beta", "gamma")]
    assert int(answer.headers["retry-after"]) > 0
    again = shared.create(key)
    assert again.status_code == 201, again.text
    shared.destroy(again.json()["id"])


def test_a_rejected_credential_takes_the_pool_out_of_routing_until_it_verifies(
    deploy: Deploy,
) -> None:
    deployment = deploy().start()
    with deployment.fault("unauthorized", account="alpha"):
        first = deployment.create()
        assert first.status_code == 201, first.text
        assert attempts(first) == [("alpha", "refused", "outage"), ("beta", "created", None)]
        last = deployment.last_call()
        second = deployment.create()
        assert attempts(second) == [("beta", "created", None)]
        assert deployment.calls(after=last, account="alpha") == []
        with deployment.fault("quota", op="create"):
            assert deployment.create().status_code == 503  # never a 401 or 403 of ours
    deployment.signal_restart()  # which asks broken pools again, as every minute does
    eventually(lambda: deployment.create().json()["pool_id"] == "alpha", 10, every=1)


@pytest.mark.parametrize(
    "fault", ["lost_answer", "made_503", "cut", "error_500", "error_503", "garbage", "huge"]
)
def test_an_unknown_outcome_ends_in_exactly_one_instance(shared: Deployment, fault: str) -> None:
    with shared.fault(fault, account="alpha", op="create", times=1):
        answer = shared.create()
    made = answer.json()["id"]
    assert answer.status_code in (201, 202), answer.text
    eventually(lambda: shared.get(made)["state"] == "running", 60, every=0.2)
    (instance,) = of(shared, made)
    assert instance["id"] == shared.get(made)["instance_id"]
    shared.destroy(made)
    assert of(shared, made) == []


def test_an_instance_that_comes_while_it_is_waited_for_is_adopted(shared: Deployment) -> None:
    with shared.fault("late", account="alpha", op="create", seconds=8):
        answer = shared.create()
    assert answer.status_code == 201, answer.text
    assert attempts(answer) == [("alpha", "adopted", None)]
    made = answer.json()
    assert [one["id"] for one in of(shared, made["id"])] == [made["instance_id"]]
    shared.destroy(made["id"])


def test_a_destroy_whose_answer_is_lost_is_confirmed_all_the_same(shared: Deployment) -> None:
    made = shared.create().json()
    for fault in ("lost_answer", "error_500", "cut"):
        with shared.fault(fault, op="delete", times=1):
            assert shared.api.delete(f"/v1/sandboxes/{made['id']}").status_code in (202, 204)
    eventually(lambda: shared.get(made["id"])["state"] == "destroyed", 30, every=0.2)
    assert of(shared, made["id"]) == []


def test_an_instance_that_dies_by_itself_is_lost_not_replaced(shared: Deployment) -> None:
    made = shared.create().json()
    assert shared.host.post(f"/_host/instances/{made['instance_id']}/kill").is_success
    answer = shared.api.post(f"/v1/sandboxes/{made['id']}/exec", json={"command": "true"})
    assert (answer.status_code, answer.json()["code"]) == (409, "instance_gone"), answer.text
    eventually(lambda: shared.get(made["id"])["state"] == "lost", 30, every=0.2)
    assert of(shared, made["id"]) == []
