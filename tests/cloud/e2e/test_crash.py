"""A function that dies in the middle: what its client repeats ends in one instance."""

from __future__ import annotations

import os
import signal
import threading
import uuid

import httpx

from tests.cloud.e2e.deployment import Cloud
from tests.local.acceptance.deployment import eventually


def test_a_create_killed_while_the_provider_works_ends_in_one_instance(cloud: Cloud) -> None:
    key, last = uuid.uuid4().hex, cloud.last_call()
    answers: list[httpx.Response] = []
    with cloud.fault("slow", op="create", times=1, seconds=4):
        client = threading.Thread(target=lambda: answers.append(cloud.create(key)))
        client.start()
        eventually(lambda: cloud.calls(last, op="create"), 20)
        workers = cloud.workers("create_sandbox")
        assert workers
        for pid in workers:
            os.kill(pid, signal.SIGKILL)
        client.join(60)
    (answer,) = answers
    assert answer.status_code == 502, answer.text  # its body is the emulator's own, not ours
    again = cloud.create(key)
    assert again.status_code in (201, 202), again.text
    made = again.json()["id"]
    cloud.reaches(made, "running", 90)
    settled = cloud.create(key)
    assert (settled.status_code, settled.json()["id"]) == (201, made)
    everything = cloud.instances(made, alive=False)
    assert [one["id"] for one in everything] == [settled.json()["instance_id"]]
    cloud.destroy(made)
