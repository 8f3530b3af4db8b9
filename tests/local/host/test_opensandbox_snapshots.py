"""OpenSandbox's snapshots on the host: by the official SDK, as published, as the server does."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from opensandbox import SandboxManagerSync, SandboxSync
from opensandbox.config import ConnectionConfigSync
from opensandbox.exceptions import SandboxApiException
from opensandbox.models.sandboxes import SnapshotFilter

from tests.local.host.hosting import Host, until
from tests.local.host.opensandbox import BODY, CONFIG, KEYS, Client, told
from tests.local.host.test_opensandbox_spec import Spec

pytestmark = pytest.mark.xdist_group("opensandbox-host")
DOCUMENTS = ["sandbox-lifecycle.yml", "lifecycle-openapi-from-server-1.1.1.json"]


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    made = Host(config=CONFIG).started()
    yield made
    made.close()


@pytest.fixture
def gamma(host: Host) -> Iterator[Client]:
    client = Client(host)
    yield client
    host.http.delete("/_host/faults")
    for sandbox in client.listed(pageSize=200):
        client.http.delete(f"/sandboxes/{sandbox}")
    until(lambda: not _creating(client))
    for one in client.http.get("/snapshots?pageSize=200").json()["items"]:
        client.http.delete(f"/snapshots/{one['id']}")
    client.http.close()


def _creating(client: Client) -> bool:
    return bool(client.http.get("/snapshots?state=Creating").json()["items"])


def take(client: Client, sandbox: str, **body: Any) -> httpx.Response:
    return client.http.post(f"/sandboxes/{sandbox}/snapshots", json=body)


def taken(client: Client, sandbox: str, **body: Any) -> str:
    answer = take(client, sandbox, **body)
    assert answer.status_code == 202, answer.text
    until(lambda: state(client, answer.json()["id"]) != "Creating")
    return str(answer.json()["id"])


def state(client: Client, snapshot: str) -> str:
    found: str = client.http.get(f"/snapshots/{snapshot}").json()["status"]["state"]
    return found


def restore(client: Client, snapshot: str, **more: Any) -> httpx.Response:
    body = {name: BODY[name] for name in ("timeout", "resourceLimits")}
    return client.http.post("/sandboxes", json=body | {"snapshotId": snapshot} | more)


def test_the_sdk_takes_lists_restores_and_deletes(host: Host, gamma: Client) -> None:
    options = ConnectionConfigSync(
        domain=f"{host.url.removeprefix('http://')}/opensandbox",
        protocol="http",
        api_key=KEYS["gamma"],
        use_server_proxy=True,
    )
    life = timedelta(minutes=5)
    sandbox = SandboxSync.create("python:3.12", timeout=life, connection_config=options)
    sandbox.files.write_file("/home/user/kept.txt", "as it was")
    manager = SandboxManagerSync.create(connection_config=options)
    snapshot = sandbox.create_snapshot("before-import")
    assert (snapshot.status.state, snapshot.name) == ("Creating", "before-import")
    until(lambda: manager.get_snapshot(snapshot.id).status.state == "Ready")
    other = manager.create_snapshot(sandbox.id)
    until(lambda: manager.get_snapshot(other.id).status.state == "Ready")
    sandbox.kill()

    pages = [
        manager.list_snapshots(SnapshotFilter(sandbox_id=sandbox.id, page=page, page_size=1))
        for page in (1, 2)
    ]
    assert [[one.id for one in page.snapshot_infos] for page in pages] == [
        [other.id],
        [snapshot.id],
    ]
    restored = SandboxSync.create(snapshot_id=snapshot.id, timeout=life, connection_config=options)
    assert restored.files.read_file("/home/user/kept.txt") == "as it was"
    restored.kill()
    for one in (snapshot, other):
        manager.delete_snapshot(one.id)
        with pytest.raises(SandboxApiException):
            manager.get_snapshot(one.id)
    for opened in (sandbox, restored, manager):
        opened.close()


@pytest.mark.vendor_specs
@pytest.mark.parametrize("document", DOCUMENTS, ids=["repository", "server-1.1.1"])
def test_answers_are_as_published(vendor_specs: Path, gamma: Client, document: str) -> None:
    spec = Spec(vendor_specs / "opensandbox" / document)
    own = "/v1" if "/v1/snapshots" in spec.paths else ""
    many, one = f"{own}/snapshots", f"{own}/snapshots/{{snapshotId}}"
    if one not in spec.paths:
        one = f"{own}/snapshots/{{snapshot_id}}"
    take_path = next(path for path in spec.paths if path.endswith("}/snapshots"))
    sandbox = gamma.made()
    for answer in (take(gamma, sandbox, name="one"), take(gamma, sandbox), take(gamma, "none")):
        spec.check(answer, "post", take_path)
    gamma.http.post(f"/sandboxes/{sandbox}/pause")
    spec.check(take(gamma, sandbox), "post", take_path)
    gamma.http.post(f"/sandboxes/{sandbox}/resume")
    for query in ("", "?page=1&pageSize=1", "?state=Ready", f"?sandboxId={sandbox}"):
        spec.check(gamma.http.get("/snapshots" + query), "get", many)
    snapshot = taken(gamma, sandbox)
    restored = restore(gamma, snapshot)
    assert restored.status_code == 202
    for method in ("get", "delete"):
        for name in (snapshot, "none"):
            spec.check(gamma.http.request(method, f"/snapshots/{name}"), method, one)
    shown = gamma.http.get(f"/sandboxes/{restored.json()['id']}").json()
    assert (shown["snapshotId"], "image" in shown) == (snapshot, False)


def test_a_snapshot_is_creating_until_it_is_ready(host: Host, gamma: Client) -> None:
    sandbox = gamma.made()
    host.order(fault="slow_capture", seconds=0.5, times=1)
    snapshot = take(gamma, sandbox, name="slow").json()["id"]
    assert state(gamma, snapshot) == "Creating"
    refused = restore(gamma, snapshot)
    assert (refused.status_code, refused.json()["code"]) == (409, "SNAPSHOT::NOT_READY")
    kept = gamma.http.delete(f"/snapshots/{snapshot}")
    assert (kept.status_code, kept.json()["code"]) == (409, "SNAPSHOT::INVALID_STATE")
    assert told(gamma.run(sandbox, "echo alive")) == ["alive"]
    until(lambda: state(gamma, snapshot) == "Ready")
    assert restore(gamma, snapshot).status_code == 202


def test_a_snapshot_may_fail(host: Host, gamma: Client) -> None:
    sandbox = gamma.made()
    host.order(fault="failed_capture", times=1)
    failed = taken(gamma, sandbox, name="one")
    host.order(fault="slow_capture", seconds=0.2, times=1)
    orphan = take(gamma, sandbox, name="two").json()["id"]
    gamma.http.delete(f"/sandboxes/{sandbox}")
    until(lambda: state(gamma, orphan) != "Creating")
    for snapshot in (failed, orphan):
        assert state(gamma, snapshot) == "Failed"
        assert restore(gamma, snapshot).status_code == 409
        assert gamma.http.delete(f"/snapshots/{snapshot}").status_code == 204


def test_a_snapshot_in_use_stays_deleting_until_it_can_go(gamma: Client) -> None:
    snapshot = taken(gamma, gamma.made())
    user = restore(gamma, snapshot).json()["id"]
    refused = gamma.http.delete(f"/snapshots/{snapshot}")
    assert (refused.status_code, refused.json()["code"]) == (409, "SNAPSHOT::DELETE_CONFLICT")
    assert state(gamma, snapshot) == "Deleting"
    gamma.http.delete(f"/sandboxes/{user}")
    assert gamma.http.delete(f"/snapshots/{snapshot}").status_code == 204
    assert gamma.http.delete(f"/snapshots/{snapshot}").json()["code"] == "SNAPSHOT::NOT_FOUND"


def test_an_image_and_a_snapshot_exclude_each_other(gamma: Client) -> None:
    snapshot = taken(gamma, gamma.made())
    assert restore(gamma, snapshot, image={"uri": "python:3.12"}).status_code == 422
    assert restore(gamma, "").status_code == 422
    assert restore(gamma, "none").json()["code"] == "SNAPSHOT::NOT_FOUND"
    other = Client(gamma.host, "delta")
    assert restore(other, snapshot).status_code == 404
    assert other.http.get("/snapshots").json()["items"] == []
    other.http.close()


def test_names_may_be_there_twice(gamma: Client) -> None:
    sandbox = gamma.made()
    both = {taken(gamma, sandbox, name="same") for _ in range(2)}
    found = gamma.http.get("/snapshots?name=same").json()["items"]
    assert {one["id"] for one in found} == both
    assert take(gamma, sandbox, name="").status_code == 422


def test_faults_hit_the_operations_on_snapshots(host: Host, gamma: Client) -> None:
    sandbox = gamma.made()
    host.order(fault="lost_answer", op="snapshot", times=1)
    with pytest.raises(httpx.RemoteProtocolError):
        take(gamma, sandbox, name="one")
    until(lambda: not _creating(gamma))
    (found,) = gamma.http.get("/snapshots").json()["items"]
    host.order(fault="not_found", op="snapshot_get", times=1)
    lied = gamma.http.get(f"/snapshots/{found['id']}")
    assert (lied.status_code, lied.json()["code"]) == (404, "SNAPSHOT::NOT_FOUND")
    host.order(fault="list_lag", op="snapshot_list", seconds=60, times=1)
    assert gamma.http.get("/snapshots").json()["items"] == []
    host.order(fault="cut", op="snapshot_destroy", times=1)
    with pytest.raises(httpx.RemoteProtocolError):
        gamma.http.delete(f"/snapshots/{found['id']}")
    assert state(gamma, found["id"]) == "Ready"
