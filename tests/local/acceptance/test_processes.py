"""Starting, stopping and dying: what stays, what goes, and who may be ended."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from infra.local.process import Process
from infra.local.state import write_private
from tests.local.acceptance.conftest import Deploy
from tests.local.acceptance.deployment import ROOT, Deployment, eventually

SOON = 5.0


def pids(deployment: Deployment) -> tuple[int, int]:
    """Router and host."""
    return int((deployment.state / "router.pid").read_text()), int(deployment.announced["pid"])


def test_the_first_start_is_healthy_within_five_seconds_and_private(deploy: Deploy) -> None:
    deployment = deploy().start()
    assert deployment.start_seconds < SOON
    assert stat.S_IMODE(deployment.state.stat().st_mode) == 0o700
    for path in deployment.state.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
    shown = deployment.output.read_text()
    key = (deployment.state / "key").read_text().strip()
    for said in (f"KEY={key}", "curl", "alpha", "beta", deployment.announced["engine"]):
        assert said in shown
    stored = b"".join(path.read_bytes() for path in deployment.state.glob("router.db*"))
    assert key.encode() not in stored
    status = deployment.run("status")
    assert (status.returncode, str(pids(deployment)[0]) in status.stdout) == (0, True)


def test_it_listens_on_loopback_only(shared: Deployment) -> None:
    for pid in pids(shared):
        inodes = {os.readlink(fd) for fd in Path(f"/proc/{pid}/fd").iterdir() if fd.exists()}
        rows = [
            row.split()
            for table in ("tcp", "tcp6")
            for row in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]
        ]
        mine = [row[1] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in inodes]
        assert mine
        assert all(address.startswith("0100007F:") for address in mine)


def test_a_second_run_on_the_same_state_refuses_and_the_first_lives(shared: Deployment) -> None:
    second = shared.run()
    assert second.returncode == 1
    assert str(pids(shared)[0]) in second.stderr
    assert "make stop" in second.stderr
    assert shared.api.get("/v1/health").status_code == 200
    assert int((shared.state / "router.pid").read_text()) == pids(shared)[0]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_sandboxes_outlive_the_router_and_a_restart_takes_them_up(
    deploy: Deploy, number: signal.Signals
) -> None:
    deployment = deploy().start()
    box = deployment.create(ttl_seconds=120).json()
    _, host = pids(deployment)
    code = deployment.signal(number)
    if number is not signal.SIGKILL:
        assert code == 0
        assert box["id"] in deployment.output.read_text()
        assert "1 sandbox still runs:" in deployment.output.read_text()
        assert not (deployment.state / "router.pid").exists()
    assert [one["id"] for one in deployment.instances()] == [box["instance_id"]]
    assert deployment.run("status").returncode == 3
    deployment.start()
    assert deployment.start_seconds < SOON
    assert pids(deployment)[1] == host
    url = f"/v1/sandboxes/{box['id']}/exec"
    assert deployment.api.post(url, json={"command": "echo up"}).json()["stdout"] == "up\n"
    router = Process.of(pids(deployment)[0])
    stopped = deployment.run("stop")
    assert stopped.returncode == 0, stopped.stderr
    assert "1 of 1 sandboxes destroyed" in stopped.stdout
    said = deployment.output.read_text()
    assert said.rstrip().endswith("Stopped. `make stop` destroys what runs.")
    assert router is not None
    deployment.ended()
    assert Process.of(host) is None
    assert_nothing_runs(deployment)
    again = deployment.run("stop")
    assert (again.returncode, again.stderr) == (0, "")


def assert_nothing_runs(deployment: Deployment) -> None:
    """No process of this machine names the deployment's folder."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            command = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
        except OSError:
            continue
        if str(deployment.state).encode() in command:
            found.append(command)
    assert found == []


def test_stop_works_on_the_store_when_the_router_was_killed(deploy: Deploy) -> None:
    deployment = deploy().start()
    box = deployment.create(ttl_seconds=600).json()
    deployment.signal(signal.SIGKILL)
    stopped = deployment.run("stop")
    assert (stopped.returncode, stopped.stderr) == (0, "")
    assert_nothing_runs(deployment)
    deployment.start()
    assert deployment.get(box["id"])["state"] == "destroyed"


def test_stop_ends_nobody_whose_pid_it_only_remembers(deploy: Deploy) -> None:
    deployment = deploy().start()
    deployment.signal(signal.SIGKILL)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as stranger:
        process = Process.of(stranger.pid)
        assert process is not None
        write_private(deployment.state / "router.pid", str(stranger.pid).encode())
        stale = {"pid": stranger.pid, "started": "1", "url": "http://127.0.0.1:1"}
        write_private(deployment.state / "router.json", json.dumps(stale).encode())
        announced = {**deployment.announced, "pid": stranger.pid}
        host = Process.of(deployment.announced["pid"])
        write_private(deployment.state / "host.json", json.dumps(announced).encode())
        stopped = deployment.run("stop")
        assert (stopped.returncode, "may still run" in stopped.stderr) == (1, True)
        assert process.alive
        stranger.communicate(b"\n")
    assert host is not None
    host.signal(signal.SIGTERM)
    assert host.ended_within(10)


def test_stop_and_status_where_nothing_ever_ran_touch_nothing(deploy: Deploy) -> None:
    deployment = deploy()
    stopped = deployment.run("stop")
    assert (stopped.returncode, stopped.stderr) == (0, "")
    assert deployment.run("status").returncode == 3
    assert not deployment.state.exists()


@pytest.mark.parametrize(
    ("name", "value"),
    [("PORT", "eighty"), ("PORT", "65536"), ("STATE", ""), ("STATE", "/dev/null")],
)
def test_a_bad_option_is_said_and_exits_with_2(deploy: Deploy, name: str, value: str) -> None:
    for command in ("run", "stop"):
        refused = deploy().run(command, **{name: value})
        assert refused.returncode == 2
        assert name in refused.stderr
        assert "Traceback" not in refused.stderr


def test_a_taken_port_is_said_and_exits_with_2(deploy: Deploy) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        refused = deploy().run(PORT=port)
    assert refused.returncode == 2
    assert f"PORT={port}" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_an_edited_pools_file_is_kept_and_a_broken_one_is_explained(deploy: Deploy) -> None:
    deployment = deploy().start()
    path = deployment.state / "pools.json"
    data = json.loads(path.read_text())
    data["pools"] = data["pools"][1:]
    del data["images"]["default"]["alpha"]
    path.write_text(json.dumps(data))
    deployment.signal(signal.SIGTERM)
    deployment.start()
    assert json.loads(path.read_text()) == data
    box = deployment.create().json()
    assert (box["pool_id"], len(box["route"])) == ("beta", 2)
    deployment.destroy(box["id"])
    deployment.signal(signal.SIGTERM)
    for broken, said in [("{", "pools.json"), ('{"pools": [{"id": "A"}]}', "pools[0] needs")]:
        path.write_text(broken)
        refused = deployment.run()
        assert (refused.returncode, said in refused.stderr) == (2, True), refused.stderr
        assert "Traceback" not in refused.stderr
    path.write_text(json.dumps(data))


def test_a_folder_of_somebody_else_is_refused_by_run_and_left_alone_by_stop(deploy: Deploy) -> None:
    deployment = deploy()
    deployment.state.mkdir(mode=0o755)
    (deployment.state / "thesis.txt").touch()
    refused = deployment.run()
    assert (refused.returncode, "holds other files" in refused.stderr) == (2, True)
    assert deployment.run("stop").returncode == 0
    assert [path.name for path in deployment.state.iterdir()] == ["thesis.txt"]
    assert stat.S_IMODE(deployment.state.stat().st_mode) == 0o755


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_create_that_outlasts_a_stopping_router_is_unknown_and_taken_up(
    deploy: Deploy, number: signal.Signals
) -> None:
    deployment = deploy().start()
    slow = deployment.fault("slow", account="alpha", op="create", seconds=9, times=1)
    with slow, ThreadPoolExecutor(1) as threads:
        asked = threads.submit(deployment.create, "cut-off")
        eventually(lambda: deployment.calls(account="alpha", op="create"), 10)
        assert deployment.signal(number, wait=15) == 0
        answer = asked.result(15)
    assert (answer.status_code, answer.json()["code"]) == (503, "unknown_outcome")
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["x-request-id"] == answer.json()["request_id"]
    deployment.start()
    eventually(lambda: deployment.create("cut-off").status_code == 201, 40, every=0.5)
    assert len(deployment.instances()) == 1


def test_a_router_goes_on_when_nobody_reads_what_it_says(deploy: Deploy) -> None:
    deployment = deploy()
    reader, writer = os.pipe()
    os.close(reader)
    errors = deployment.root / "errors.txt"
    with errors.open("wb") as out:
        router = subprocess.Popen(
            deployment.command, cwd=ROOT, env=deployment.env, stdout=writer, stderr=out
        )
    os.close(writer)
    eventually(lambda: deployment.run("status").returncode == 0, 20, every=0.2)
    router.send_signal(signal.SIGTERM)
    assert router.wait(10) == 0
    assert errors.read_text() == ""


def test_a_wrong_pools_file_is_refused_before_a_host_is_started(deploy: Deploy) -> None:
    deployment = deploy()
    deployment.state.mkdir()
    (deployment.state / "pools.json").write_text('{"pools": [{"id": "a", "kind": "e2b"}]}')
    refused = deployment.run()
    assert refused.returncode == 2
    assert f"{deployment.state}/pools.json: pools[0] needs" in refused.stderr
    assert not (deployment.state / "host.json").exists()
    (deployment.state / "pools.json").unlink()


def test_a_host_that_died_is_replaced_and_its_sandboxes_are_lost(deploy: Deploy) -> None:
    deployment = deploy().start()
    box = deployment.create(ttl_seconds=600).json()
    snapshot = deployment.api.post(f"/v1/sandboxes/{box['id']}/snapshots").json()
    deployment.signal(signal.SIGTERM)
    host = Process.of(deployment.announced["pid"])
    assert host is not None
    host.signal(signal.SIGKILL)
    assert host.ended_within(5)
    deployment.start()
    assert deployment.instances() == []
    lost = deployment.api.get(f"/v1/sandboxes/{box['id']}", params={"refresh": "true"})
    assert lost.status_code == 200
    eventually(lambda: deployment.get(box["id"])["state"] == "lost", 20, every=0.5)
    assert deployment.create(snapshot_id=snapshot["id"]).status_code == 201  # a disk outlives it
