"""What sixteen clients saw of a real router under faults, checked as the simulation's histories."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.local.acceptance.deployment import Deployment, eventually
from tests.sim.history import Event, Kind, check

pytestmark = pytest.mark.slow
CLIENTS, KEYS, SECONDS = 16, 4, 10.0
"""Every second brings so many new keys, which all clients fight for."""
GOES_AWAY, PATIENCE = 0.2, 0.02
"""Some clients hang up after so many seconds, and never learn what came of it."""
STORM = (
    ("capacity", "create", 0.15),
    ("made_503", "create", 0.1),
    ("lost_answer", "create", 0.1),
    ("error_503", "delete", 0.2),
    ("cut", "*", 0.05),
)
ENDED = ("destroyed", "failed", "lost")


class Clients:
    """What each client does, and what it saw."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment, self._numbers = deployment, itertools.count(1)
        self._lock = threading.Lock()
        self.history: list[Event] = []

    def note(self, kind: Kind, op: str, call: int = 0, **more: Any) -> None:
        """A line of the history."""
        with self._lock:
            self.history.append(Event(kind, op, time.monotonic(), call, **more))

    def create(self, key: str, ttl: int, wait: int, timeout: float) -> str | None:
        """One POST with a key; the sandbox it told of."""
        call = next(self._numbers)
        self.note("invoke", "create", call, tenant="t", key=key, body=str(ttl))
        headers = {"Idempotency-Key": key, "Prefer": f"wait={wait}"}
        body = {"ttl_seconds": ttl, "size": "1x1"}
        try:
            answer = self._deployment.api.post(
                "/v1/sandboxes", json=body, headers=headers, timeout=timeout
            )
        except httpx.HTTPError:
            self.note("info", "create", call)
            return None
        told = answer.json()
        good = answer.status_code in (201, 202)
        reused = told.get("code") == "idempotency_key_reused"
        self.note(
            "ok" if good else "fail",
            "create",
            call,
            status=answer.status_code,
            sandbox=told.get("id") if good else None,
            instance=told.get("instance_id") if good else None,
            state="reused" if reused else told.get("state"),
            answer=answer.text if answer.status_code == 201 else "",
        )
        return told["id"] if good else None

    def destroy(self, sandbox_id: str) -> None:
        """One DELETE."""
        call = next(self._numbers)
        self.note("invoke", "destroy", call, tenant="t", sandbox=sandbox_id)
        answer = self._deployment.api.delete(f"/v1/sandboxes/{sandbox_id}")
        good = answer.status_code in (202, 204)
        self.note("ok" if good else "fail", "destroy", call, sandbox=sandbox_id)

    def run(self, number: int) -> None:
        """Creates, repeats, other bodies and destroys, until the time is over."""
        chance, began = random.Random(number), time.monotonic()
        while (gone := time.monotonic() - began) < SECONDS:
            key = f"key-{int(gone)}-{chance.randrange(KEYS)}"
            ttl = 301 if chance.random() < 0.1 else 300
            timeout = PATIENCE if chance.random() < GOES_AWAY else 60.0
            made = self.create(key, ttl, chance.choice((0, 3, 10)), timeout)
            time.sleep(chance.random() / 10)
            if made and chance.random() < 0.1:
                self.destroy(made)


@pytest.fixture
def deployment(tmp_path: Path) -> Iterator[Deployment]:
    made = Deployment(tmp_path)
    try:
        yield made.start()
    finally:
        made.end()


def test_what_clients_saw_is_what_the_router_promises(deployment: Deployment) -> None:
    clients = Clients(deployment)
    with ExitStack() as storm, ThreadPoolExecutor(CLIENTS) as threads:
        for seed, (fault, op, probability) in enumerate(STORM):
            order = {"op": op, "probability": probability, "seed": seed}
            storm.enter_context(deployment.fault(fault, **order))
        list(threads.map(clients.run, range(CLIENTS)))
    ids = {event.sandbox for event in clients.history if event.sandbox}

    def quiet() -> bool:
        """Nobody is on the way, and what ended is gone."""
        states = {id_: deployment.get(id_)["state"] for id_ in ids}
        alive = Counter(one["metadata"]["constal-sandbox-id"] for one in deployment.instances())
        running = {id_: 1 for id_, state in states.items() if state == "running"}
        return set(states.values()) <= {"running", *ENDED} and alive == running

    eventually(quiet, 60, every=1)
    for id_ in ids:
        box = deployment.get(id_)
        clients.note(
            "seen", "get", sandbox=id_, state=box["state"], instance=box.get("instance_id")
        )
    for one in deployment.instances():
        sandbox = one["metadata"]["constal-sandbox-id"]
        clients.note("alive", "list", sandbox=sandbox, instance=one["id"])
    check(clients.history)
    answers = Counter((event.op, event.kind, event.status) for event in clients.history)
    print(len(ids), answers)
    assert len(ids) >= KEYS * SECONDS / 3
    for seen in (("create", "ok", 201), ("create", "fail", 422), ("create", "info", 0)):
        assert answers[seen] > 0, f"never {seen}"
