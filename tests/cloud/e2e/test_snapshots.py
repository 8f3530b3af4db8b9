"""Snapshots of the deployed stacks, every function held to its role."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from tests.cloud.e2e.deployment import Cloud
from tests.local.acceptance.deployment import eventually


@pytest.fixture(scope="module")
def cloud(enforced: Cloud) -> Cloud:
    return enforced


def captures(cloud: Cloud) -> list[dict[str, Any]]:
    """What the vendor keeps."""
    return list(cloud.host.get("/_host/captures").json()["captures"])


def gone(cloud: Cloud, snapshot: str) -> bool:
    return cloud.api.delete(f"/v1/snapshots/{snapshot}").status_code == 204


def test_a_snapshot_outlives_its_sandbox_and_becomes_another(cloud: Cloud) -> None:
    cloud.rested()
    source = cloud.create(ttl_seconds=600).json()["id"]
    note = {"path": "/tmp/note"}
    kind = {"Content-Type": "application/octet-stream"}
    url = f"/v1/sandboxes/{source}"
    assert (
        cloud.api.put(f"{url}/files", content=b"kept", headers=kind, params=note).status_code == 204
    )
    key = {"Idempotency-Key": uuid.uuid4().hex}
    taken = cloud.api.post(f"{url}/snapshots", json={"ttl_seconds": 900}, headers=key)
    assert (taken.status_code, taken.json()["state"]) == (201, "ready"), taken.text
    again = cloud.api.post(f"{url}/snapshots", json={"ttl_seconds": 900}, headers=key)
    assert (again.content, again.headers["idempotent-replayed"]) == (taken.content, "true")
    snapshot = taken.json()["id"]
    assert cloud.api.get(f"/v1/snapshots/{snapshot}").json()["state"] == "ready"
    listed = cloud.api.get("/v1/snapshots", params={"sandbox_id": source}).json()["data"]
    assert [one["id"] for one in listed] == [snapshot]
    cloud.destroy(source)
    made = cloud.create(snapshot_id=snapshot)
    assert (made.status_code, made.json()["snapshot_id"]) == (201, snapshot), made.text
    other = made.json()["id"]
    assert cloud.api.get(f"/v1/sandboxes/{other}/files", params=note).content == b"kept"
    cloud.destroy(other)
    eventually(lambda: gone(cloud, snapshot), 30)
    assert not [one for one in captures(cloud) if one["name"].startswith(snapshot)]


def test_a_snapshot_nobody_waits_for_is_taken_by_the_queue(cloud: Cloud) -> None:
    cloud.rested()
    source = cloud.create(ttl_seconds=600).json()["id"]
    asked = cloud.api.post(f"/v1/sandboxes/{source}/snapshots", headers={"Prefer": "wait=0"})
    assert (asked.status_code, asked.json()["state"]) == (202, "creating"), asked.text
    url = f"/v1/snapshots/{asked.json()['id']}"
    eventually(lambda: cloud.api.get(url).json()["state"] == "ready", 30)
    cloud.destroy(source)
    eventually(lambda: gone(cloud, asked.json()["id"]), 30)
