"""`make run` serves a second kind of provider: its own sizes, its tighter labels, merged output."""

from __future__ import annotations

from tests.local.acceptance.deployment import Deployment

GAMMA = {"only": ["gamma"]}


def test_a_sandbox_of_any_size_and_image_lives_at_the_third_pool(shared: Deployment) -> None:
    answer = shared.create(size="0.5x1.5", image="opensandbox:python:3.11", labels={"team": "a"})
    assert answer.status_code == 201, answer.text
    box = answer.json()
    assert (box["pool_id"], box["provider"]) == ("gamma", "opensandbox")
    assert (box["size"]["vcpu"], box["size"]["memory_gib"]) == (0.5, 1.5)
    assert (box["isolation"], box["cost"]) == (shared.announced["isolation"], None)
    url = f"/v1/sandboxes/{box['id']}"
    ran = shared.api.post(f"{url}/exec", json={"command": "printf out; printf err >&2; exit 3"})
    assert ran.status_code == 200, ran.text
    told = ran.json()
    assert (told["exit_code"], told["stdout"], told["stderr"]) == (3, "outerr", "")
    assert told["stderr_mode"] == "merged"
    mute = shared.api.post(f"{url}/exec", json={"command": "cat", "stdin": "in"})
    assert (mute.status_code, mute.json()["code"]) == (422, "provider_unsupported")
    port = shared.api.post(f"{url}/ports/8080")
    assert port.json()["visibility"] == "public"  # said, because it is
    shared.destroy(box["id"])
    assert shared.instances(id=box["instance_id"]) == []


def test_a_label_it_cannot_keep_is_a_reason_and_not_a_cut(shared: Deployment) -> None:
    labels = {"long": "v" * 64}
    route = shared.api.post("/v1/route", json={"labels": labels}).json()
    assert [c["pool_id"] for c in route["candidates"]] == ["alpha", "beta"]
    refused = {one["pool_id"]: one["reasons"] for one in route["refused"]}
    assert refused == {"gamma": ["labels:value_length"]}
    answer = shared.create(labels=labels, provider=GAMMA)
    assert (answer.status_code, answer.json()["code"]) == (422, "unsupported")


def test_a_lost_answer_there_ends_in_one_instance(shared: Deployment) -> None:
    with shared.fault("lost_answer", account="gamma", op="create", times=1):
        answer = shared.create(provider=GAMMA)
    assert answer.status_code == 201, answer.text
    box = answer.json()
    assert [(a["pool_id"], a["outcome"]) for a in box["attempts"]] == [("gamma", "adopted")]
    alive = [one["id"] for one in shared.instances(account="gamma")]
    assert alive == [box["instance_id"]]
    shared.destroy(box["id"])
