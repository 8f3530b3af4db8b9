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
    faulty: Deployment, fault: str, klass: str
) -> None:
    first, second, *_ = pools = faulty.order()
    with faulty.fault(fault, account=first, op="create"):
        answer = faulty.create(provider={"order": pools})  # also if a cool-down ends just now
    assert answer.status_code == 201, answer.text
    assert attempts(answer) == [(first, "refused", klass), (second, "created", None)]
    assert answer.json()["pool_id"] == second
    assert [one["account"] for one in of(faulty, answer.json()["id"])] == [second]
    faulty.destroy(answer.json()["id"])


@pytest.mark.parametrize(
    ("fault", "status", "code"),
    [("forbidden", 403, "provider_permission"), ("invalid", 422, "provider_rejected")],
)
def test_a_final_refusal_is_answered_and_replayed_and_no_other_pool_is_asked(
    faulty: Deployment, fault: str, status: int, code: str
) -> None:
    key, last, pools = uuid.uuid4().hex, faulty.last_call(), faulty.order()
    with faulty.fault(fault, account=pools[0], op="create"):
        answer = faulty.create(key, provider={"order": pools})
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert len(faulty.calls(after=last)) == 1
    replay = faulty.create(key, provider={"order": pools})
    assert (replay.status_code, replay.content) == (status, answer.content)
    assert replay.headers["idempotent-replayed"] == "true"
    assert len(faulty.calls(after=last)) == 1


def test_without_fallbacks_only_the_first_candidate_is_asked(faulty: Deployment) -> None:
    last = faulty.last_call()
    with faulty.fault("quota", op="create"):  # whichever is first: a cool-down may end just now
        answer = faulty.create(provider={"allow_fallbacks": False})
    assert answer.status_code == 503
    ((asked, outcome, _),) = attempts(answer)
    assert outcome == "refused"
    assert [call["account"] for call in faulty.calls(after=last)] == [asked]


def test_when_no_pool_can_the_answer_is_503_with_every_attempt_and_the_key_is_free(
    faulty: Deployment,
) -> None:
    key, pools = uuid.uuid4().hex, faulty.order()
    with faulty.fault("quota", op="create"):
        answer = faulty.create(key)
    assert (answer.status_code, answer.json()["code"]) == (503, "no_pool_available")
    assert sorted(pools) == ["alpha", "beta", "gamma"]
    assert sorted(attempts(answer)) == [(pool, "refused", "quota") for pool in sorted(pools)]
    assert int(answer.headers["retry-after"]) > 0
    again = faulty.create(key)
    assert again.status_code == 201, again.text
    faulty.destroy(again.json()["id"])


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
def test_an_unknown_outcome_ends_in_exactly_one_instance(faulty: Deployment, fault: str) -> None:
    pools = faulty.order()
    with faulty.fault(fault, account=pools[0], op="create", times=1):
        answer = faulty.create(provider={"order": pools})
    made = answer.json()["id"]
    assert answer.status_code in (201, 202), answer.text
    eventually(lambda: faulty.get(made)["state"] == "running", 60, every=0.2)
    (instance,) = of(faulty, made)
    assert instance["id"] == faulty.get(made)["instance_id"]
    faulty.destroy(made)
    assert of(faulty, made) == []


def test_an_instance_that_comes_while_it_is_waited_for_is_adopted(faulty: Deployment) -> None:
    first, *_ = pools = faulty.order()
    with faulty.fault("late", account=first, op="create", seconds=8):
        answer = faulty.create(provider={"order": pools})
    assert answer.status_code == 201, answer.text
    assert attempts(answer) == [(first, "adopted", None)]
    made = answer.json()
    assert [one["id"] for one in of(faulty, made["id"])] == [made["instance_id"]]
    faulty.destroy(made["id"])


def test_a_destroy_whose_answer_is_lost_is_confirmed_all_the_same(faulty: Deployment) -> None:
    made = faulty.create().json()
    for fault in ("lost_answer", "error_500", "cut"):
        with faulty.fault(fault, op="delete", times=1):
            assert faulty.api.delete(f"/v1/sandboxes/{made['id']}").status_code in (202, 204)
    eventually(lambda: faulty.get(made["id"])["state"] == "destroyed", 30, every=0.2)
    assert of(faulty, made["id"]) == []


def test_an_instance_that_dies_by_itself_is_lost_not_replaced(faulty: Deployment) -> None:
    made = faulty.create().json()
    assert faulty.host.post(f"/_host/instances/{made['instance_id']}/kill").is_success
    answer = faulty.api.post(f"/v1/sandboxes/{made['id']}/exec", json={"command": "true"})
    assert (answer.status_code, answer.json()["code"]) == (409, "instance_gone"), answer.text
    eventually(lambda: faulty.get(made["id"])["state"] == "lost", 30, every=0.2)
    assert of(faulty, made["id"]) == []
