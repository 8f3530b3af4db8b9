"""What sixteen clients saw of a real router under faults, checked as the simulation's histories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.local.acceptance.deployment import Deployment, eventually
from tests.local.clients import Clients, Load
from tests.sim.history import check

pytestmark = pytest.mark.slow
LOAD = Load()
STORM = (
    ("capacity", "create", 0.15),
    ("made_503", "create", 0.1),
    ("lost_answer", "create", 0.1),
    ("error_503", "delete", 0.2),
    ("cut", "*", 0.05),
)
ENDED = ("destroyed", "failed", "lost")


@pytest.fixture
def deployment(tmp_path: Path) -> Iterator[Deployment]:
    made = Deployment(tmp_path)
    try:
        yield made.start()
    finally:
        made.end()


def test_what_clients_saw_is_what_the_router_promises(deployment: Deployment) -> None:
    clients = Clients(deployment.api, LOAD)
    with ExitStack() as storm:
        for seed, (fault, op, probability) in enumerate(STORM):
            order = {"op": op, "probability": probability, "seed": seed}
            storm.enter_context(deployment.fault(fault, **order))
        clients.run()
    ids = clients.ids

    def quiet() -> bool:
        """Nobody is on the way, and what ended is gone."""
        states = {id_: deployment.get(id_)["state"] for id_ in ids}
        alive = Counter(one["metadata"]["constal-sandbox-id"] for one in deployment.instances())
        running = {id_: 1 for id_, state in states.items() if state == "running"}
        return set(states.values()) <= {"running", *ENDED} and alive == running

    eventually(quiet, 60, every=1)
    clients.saw({id_: deployment.get(id_) for id_ in ids}, deployment.instances())
    check(clients.history)
    answers = Counter((event.op, event.kind, event.status) for event in clients.history)
    print(len(ids), answers)
    assert len(ids) >= LOAD.keys * LOAD.seconds / 3
    for seen in (("create", "ok", 201), ("create", "fail", 422), ("create", "info", 0)):
        assert answers[seen] > 0, f"never {seen}"
