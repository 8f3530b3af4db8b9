"""E2B's snapshots on the host: by the official SDK, as published, and what the sources say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from e2b import CommandExitException, Sandbox, SandboxException

from tests.local.host.hosting import CONFIG, E2B, KEYS, Host, until
from tests.local.host.test_host_e2b_spec import Spec

COUNTER = """
import os
files = [os.open(name, os.O_RDWR | os.O_CREAT) for name in ("count", "/tmp/count")]
number = 0
while True:
    number += 1
    for file in files:
        os.pwrite(file, b"%012d" % number, 0)
"""
SNAPSHOTS = "/sandboxes/{sandboxID}/snapshots"


@pytest.fixture
def options(host: Host) -> Iterator[dict[str, Any]]:
    yield {
        "api_url": f"{host.url}/e2b",
        "sandbox_url": f"{host.url}/e2b/sandbox",
        "api_key": KEYS["alpha"],
    }
    _clean(E2B(host))


def _clean(client: E2B) -> None:
    for one in client.http.get("/v2/sandboxes").json():
        client.http.delete(f"/sandboxes/{one['sandboxID']}")
    for one in client.http.get("/snapshots").json():
        destroy(client, one["snapshotID"])
    client.close()


@pytest.fixture
def client(host: Host) -> Iterator[E2B]:
    made = E2B(host)
    yield made
    host.http.delete("/_host/faults")
    _clean(made)


def take(client: E2B, sandbox: dict[str, Any], name: str | None = None) -> httpx.Response:
    body = {} if name is None else {"name": name}
    return client.http.post(f"/sandboxes/{sandbox['sandboxID']}/snapshots", json=body)


def destroy(client: E2B, snapshot: str) -> httpx.Response:
    return client.http.delete(f"/templates/{snapshot.replace('/', '%2F')}")


def kept(host: Host) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = host.http.get("/_host/captures").json()["captures"]
    return found


def test_the_sdk_takes_lists_restores_and_deletes(options: dict[str, Any]) -> None:
    sandbox = Sandbox.create(timeout=60, **options)
    sandbox.files.write("/home/user/kept.txt", "as it was")
    sandbox.commands.run("ln -s kept.txt link; mkfifo pipe; chmod 600 kept.txt; echo x > /tmp/t")
    taken = sandbox.create_snapshot("before-import")
    assert taken.snapshot_id == "alpha/before-import:default"
    assert taken.names == ["alpha/before-import"]
    sandbox.files.write("/home/user/kept.txt", "changed since")
    unnamed = sandbox.create_snapshot(mode="filesystem")
    paginator = Sandbox.list_snapshots(sandbox_id=sandbox.sandbox_id, limit=1, **options)
    pages = []
    while paginator.has_next:
        pages += [[one.snapshot_id for one in paginator.next_items()]]
    assert pages == [[unnamed.snapshot_id], [taken.snapshot_id]]
    sandbox.kill()

    restored = Sandbox.create(taken.snapshot_id, timeout=60, **options)
    look = "cat kept.txt; readlink link; test -p pipe && stat -c %a kept.txt; cat /tmp/t"
    assert restored.commands.run(look).stdout == "as it waskept.txt\n600\nx\n"
    with pytest.raises(SandboxException, match="running sandboxes using it"):
        Sandbox.delete_snapshot(taken.snapshot_id, **options)
    restored.kill()
    assert Sandbox.delete_snapshot(taken.snapshot_id, **options)
    assert not Sandbox.delete_snapshot(taken.snapshot_id, **options)
    assert Sandbox.delete_snapshot(unnamed.snapshot_id, **options)
    with pytest.raises(SandboxException, match="not found"):
        Sandbox.create(taken.snapshot_id, timeout=60, **options)


def test_a_capture_is_of_one_moment_and_what_runs_goes_on(options: dict[str, Any]) -> None:
    sandbox = Sandbox.create(timeout=60, **options)
    sandbox.commands.run("head -c 60000000 /dev/urandom > big")  # copied between the two
    sandbox.files.write("/home/user/count.py", COUNTER)
    running = sandbox.commands.run("python3 count.py", background=True)
    sandbox.commands.run("while ! test -s /tmp/count; do sleep 0.01; done")
    taken = sandbox.create_snapshot()
    restored = Sandbox.create(taken.snapshot_id, timeout=60, **options)
    first, last = restored.commands.run("cat count; echo; cat /tmp/count").stdout.split()
    assert 0 <= int(first) - int(last) <= 1
    counts = [int(sandbox.commands.run("cat count").stdout) for _ in range(2)]
    assert int(first) < counts[0] < counts[1]
    with pytest.raises(CommandExitException):
        restored.commands.run("pgrep python3")  # memory is not captured here
    running.kill()


@pytest.mark.vendor_specs
def test_answers_are_as_published(vendor_specs: Path, client: E2B) -> None:
    spec = Spec(vendor_specs / "e2b" / "openapi.yml")
    sandbox = client.made()
    spec.check(take(client, sandbox, "one"), "post", SNAPSHOTS)
    spec.check(take(client, sandbox), "post", SNAPSHOTS)
    spec.check(take(client, sandbox, "No Name!"), "post", SNAPSHOTS)
    spec.check(take(client, {"sandboxID": "none"}), "post", SNAPSHOTS)
    for query in ("", "?limit=1", "?name=one", "?name=none", "?sandboxID=none"):
        spec.check(client.http.get("/snapshots" + query), "get", "/snapshots")
    for _ in range(2):
        answer = destroy(client, "alpha/one:default")
        if answer.status_code != 404:  # documented nowhere, and read by the SDK
            spec.check(answer, "delete", "/templates/{templateID}")


def test_a_second_one_of_a_name_takes_its_place(client: E2B) -> None:
    sandbox = client.made()
    first = take(client, sandbox, "same").json()
    client.run(sandbox, "echo later > later")
    assert take(client, sandbox, "same").json() == first
    assert len(client.http.get("/snapshots").json()) == 1
    restored = client.made(templateID="same")
    assert client.run(restored, "cat later") == (0, "later\n")


def test_names_find_a_snapshot_however_they_are_qualified(client: E2B) -> None:
    taken = take(client, client.made(), "one").json()
    for name in ("one", "alpha/one", "one:default", "alpha/one:default", "ONE"):
        found = client.http.get("/snapshots", params={"name": name}).json()
        assert found == [taken], name
    assert client.http.get("/snapshots", params={"name": "one:v2"}).json() == []
    assert client.http.get("/snapshots", params={"name": "other/one"}).status_code == 400


def test_only_a_running_sandbox_is_captured_and_only_once_at_a_time(
    host: Host, client: E2B
) -> None:
    sandbox = client.made()
    host.order(fault="slow_capture", seconds=0.5, times=1)
    with ThreadPoolExecutor(1) as other:
        first = other.submit(take, client, sandbox, "one")
        until(lambda: kept(host))
        assert client.run(sandbox, "echo alive")[1] == "alive\n"
        second = take(client, sandbox, "two")
        assert (second.status_code, "'snapshotting' state" in second.text) == (409, True)
        assert client.http.get("/snapshots").json() == []
        assert first.result().status_code == 201
    client.http.post(f"/sandboxes/{sandbox['sandboxID']}/pause")
    assert take(client, sandbox, "three").status_code == 404
    assert [one["name"] for one in kept(host)] == ["one"]


def test_a_failed_capture_costs_the_sandbox(host: Host, client: E2B) -> None:
    sandbox = client.made()
    host.order(fault="failed_capture", times=1)
    assert take(client, sandbox, "one").status_code == 500
    assert client.listed() == []
    assert client.http.get("/snapshots").json() == kept(host) == []


def test_a_sandbox_that_ends_meanwhile_leaves_no_capture(host: Host, client: E2B) -> None:
    sandbox = client.made()
    host.order(fault="slow_capture", seconds=0.3, times=1)
    with ThreadPoolExecutor(1) as other:
        taking = other.submit(take, client, sandbox, "one")
        until(lambda: kept(host))
        client.http.delete(f"/sandboxes/{sandbox['sandboxID']}")
        assert taking.result().status_code == 500
    assert kept(host) == []


def test_faults_hit_the_operations_on_snapshots(host: Host, client: E2B) -> None:
    sandbox = client.made()
    host.order(fault="lost_answer", op="snapshot", times=1)
    with pytest.raises(httpx.RemoteProtocolError):
        take(client, sandbox, "one")
    host.order(fault="list_lag", op="snapshot_list", seconds=60, times=1)
    assert client.http.get("/snapshots").json() == []
    host.order(fault="error_500", op="snapshot_get", times=1)
    assert client.http.get("/snapshots?name=one").status_code == 500
    host.order(fault="made_503", op="snapshot_destroy", times=1)
    assert destroy(client, "one").status_code == 503
    assert client.http.get("/snapshots").json() == []
    host.order(fault="capacity", op="snapshot", times=1)
    busy = take(client, sandbox)
    assert (busy.status_code, "node is busy" in busy.text) == (503, True)


def test_captures_are_an_accounts_own(host: Host, client: E2B, beta: E2B) -> None:
    taken = take(client, client.made(), "one").json()["snapshotID"]
    assert beta.http.get("/snapshots").json() == []
    assert beta.create(templateID=taken).status_code == 400  # another team's namespace
    assert beta.create(templateID="one").status_code == 404
    assert destroy(beta, "one").status_code == 404
    (shown,) = kept(host)
    assert (shown["account"], shown["state"], shown["name"]) == ("alpha", "ready", "one")
    assert host.http.get("/_host/captures?account=beta").json() == {"captures": []}
    assert host.http.get("/_host/captures?account=nobody").status_code == 400


@pytest.mark.parametrize("tier", ["unshare", "process"])
def test_every_tier_captures(new_host: Callable[..., Host], tier: str) -> None:
    host = new_host("--isolation", tier)
    client = E2B(host)
    sandbox = client.made()
    client.run(sandbox, "echo kept > kept; mkdir -m 700 d; echo x > d/x")
    taken = take(client, sandbox).json()["snapshotID"]
    restored = client.made(templateID=taken)
    assert client.run(restored, "cat kept d/x") == (0, "kept\nx\n")
    client.close()


def test_captures_survive_the_host_and_a_half_made_one_does_not(
    new_host: Callable[..., Host],
) -> None:
    host = new_host()
    client = E2B(host)
    sandbox = client.made()
    client.run(sandbox, "echo kept > kept")
    taken = take(client, sandbox, "one").json()["snapshotID"]
    client.close()
    host.stop()
    folder = host.state / "captures"
    (folder / "c-half" / "tree").mkdir(parents=True)

    again = Host("--state", str(host.state), config=CONFIG).started()
    try:
        assert [one["name"] for one in kept(again)] == ["one"]
        assert len(list(folder.iterdir())) == 1
        client = E2B(again)
        restored = client.made(templateID=taken)
        assert client.run(restored, "cat kept") == (0, "kept\n")
        client.close()
    finally:
        again.close()
