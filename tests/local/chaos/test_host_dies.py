"""The provider host, that is the vendor, dies under the router with all it runs, and comes back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.local.acceptance.deployment import eventually
from tests.local.chaos.plant import Plant

pytestmark = pytest.mark.slow


@pytest.fixture
def plant(tmp_path: Path) -> Iterator[Plant]:
    found = Plant(tmp_path, seed=1, faulty=False)
    try:
        found.start_router()
        yield found
    finally:
        found.end()


@pytest.fixture
def api(plant: Plant) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {plant.key}"}
    with httpx.Client(base_url=f"{plant.url}/v1", headers=headers, timeout=60) as client:
        yield client


def create(api: httpx.Client, key: str, **more: Any) -> httpx.Response:
    body = {"ttl_seconds": 300, **more}
    return api.post("/sandboxes", json=body, headers={"Idempotency-Key": key})


def code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


def test_a_vendor_that_dies_is_an_outage_and_what_it_had_is_lost_not_replaced(
    plant: Plant, api: httpx.Client
) -> None:
    used, ended, kept = (create(api, key).json()["id"] for key in ("used", "ended", "kept"))
    plant.kill_host()
    refused = create(api, "during")
    assert code(refused) == (503, "no_pool_available")
    assert {one["class"] for one in refused.json()["attempts"]} == {"outage"}
    assert int(refused.headers["retry-after"]) > 0
    assert code(api.post(f"/sandboxes/{used}/exec", json={"command": "true"})) == (
        503,
        "provider_outage",
    )
    assert code(api.post(f"/sandboxes/{used}/pause")) == (503, "provider_outage")
    assert (
        api.delete(f"/sandboxes/{ended}").status_code == 202
    )  # not gone until somebody confirms it
    assert api.get(f"/sandboxes/{ended}").json()["state"] == "destroying"
    assert api.get(f"/sandboxes/{used}", params={"refresh": "true"}).json()["state"] == "running"

    plant.start_host()
    assert create(api, "during").status_code == 201  # the key was free, as the 503 had said
    assert create(api, "kept").json()["id"] == kept
    assert code(api.post(f"/sandboxes/{used}/exec", json={"command": "true"})) == (
        409,
        "instance_gone",
    )
    eventually(lambda: api.get(f"/sandboxes/{used}").json()["state"] == "lost", 15, every=0.2)
    eventually(lambda: api.delete(f"/sandboxes/{ended}").status_code == 204, 15, every=0.2)
    assert len(plant.look()) == 1  # of `during`: nothing of before came back


def test_a_router_that_starts_finds_a_host_that_came_back_and_starts_one_where_none_is(
    plant: Plant, api: httpx.Client
) -> None:
    plant.kill_host()
    plant.kill_router()
    plant.start_host()
    before = plant.host
    plant.start_router()
    assert plant.host == before
    assert create(api, "first").status_code == 201
    plant.kill_host()
    plant.kill_router()
    plant.start_router()
    assert plant.host != before
    assert create(api, "second").status_code == 201
