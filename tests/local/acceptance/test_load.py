"""Many clients at once, on a good day and on a bad one."""

from __future__ import annotations

import statistics
import time
import uuid
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import httpx
import pytest

from tests.local.acceptance.conftest import Deploy
from tests.local.acceptance.deployment import Deployment, eventually

pytestmark = pytest.mark.slow
CLIENTS = 32
STORM = (
    ("capacity", "create", 0.2),
    ("error_503", "*", 0.15),
    ("lost_answer", "*", 0.15),
    ("made_503", "*", 0.1),
    ("cut", "*", 0.1),
)
"""Together they hit half of all calls."""


def living(deployment: Deployment) -> Counter[str]:
    """How many instances each sandbox has."""
    return Counter(one["metadata"]["constal-sandbox-id"] for one in deployment.instances())


def destroy_all(deployment: Deployment, ids: list[str]) -> None:
    with ThreadPoolExecutor(CLIENTS) as clients:
        list(clients.map(lambda made: deployment.api.delete(f"/v1/sandboxes/{made}"), ids))
    eventually(lambda: not deployment.instances(), 60, every=0.5)


def test_two_hundred_creates_from_thirty_two_clients_are_two_hundred_sandboxes(
    deploy: Deploy, record_property: Callable[[str, object], None]
) -> None:
    deployment = deploy().start()

    def create(n: int) -> tuple[float, httpx.Response]:
        began = time.perf_counter()
        answer = deployment.create(f"key-{n // 2}" if n < 20 else None, size="1x1")
        return time.perf_counter() - began, answer

    began = time.perf_counter()
    with ThreadPoolExecutor(CLIENTS) as clients:
        timed = list(clients.map(create, range(210)))
    took = time.perf_counter() - began
    answers = [answer for _, answer in timed]
    assert Counter(a.status_code for a in answers).keys() <= {201, 202}
    ids = [answer.json()["id"] for answer in answers]
    assert all(ids[2 * n] == ids[2 * n + 1] for n in range(10))  # one key, one sandbox
    assert len(set(ids)) == 200
    eventually(lambda: living(deployment) == dict.fromkeys(ids, 1), 30, every=0.5)
    for made in set(ids):
        assert deployment.get(made)["state"] == "running"
    p50 = statistics.median(seconds for seconds, _ in timed)
    record_property("create_ms_p50", round(p50 * 1000))
    print(f"200 creates from {CLIENTS} clients: {took:.1f} s, p50 {p50 * 1000:.0f} ms")
    destroy_all(deployment, list(set(ids)))


def test_when_half_of_all_provider_calls_fail_every_answer_is_honest_and_nothing_is_left(
    deploy: Deploy,
) -> None:
    deployment = deploy().start()

    def create(n: int) -> httpx.Response:
        return deployment.api.post(
            "/v1/sandboxes",
            json={"ttl_seconds": 600, "size": "1x1"},
            headers={"Idempotency-Key": uuid.uuid4().hex, "Prefer": "wait=10"},
        )

    with ExitStack() as storm, ThreadPoolExecutor(CLIENTS) as clients:
        for seed, (fault, op, probability) in enumerate(STORM):
            order = {"op": op, "probability": probability, "seed": seed}
            storm.enter_context(deployment.fault(fault, **order))
        answers = list(clients.map(create, range(64)))
    for answer in answers:
        assert answer.status_code in (201, 202, 503), answer.text
        if answer.status_code == 503:
            assert answer.json()["attempts"]
            assert int(answer.headers["retry-after"]) >= 0
    kept = [a.json()["id"] for a in answers if a.status_code in (201, 202)]
    assert kept

    def all_settled() -> bool:
        """Each runs on one instance or failed with none; what nobody serves is gone."""
        have = living(deployment)
        states = {made: deployment.get(made)["state"] for made in kept}
        running = {made for made, state in states.items() if state == "running"}
        return have == dict.fromkeys(running, 1) and set(states.values()) <= {"running", "failed"}

    eventually(all_settled, 60, every=1)
    print(Counter(answer.status_code for answer in answers))
    destroy_all(deployment, kept)
