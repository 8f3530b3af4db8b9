"""The host's control plane: truthful, bounded, and clear about bad input."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.local.host.hosting import E2B, ROOT, Host


def test_the_announcement_is_private_and_true(host: Host) -> None:
    assert stat.S_IMODE(host.announce.stat().st_mode) == 0o600
    about = host.http.get("/_host").json()
    assert set(host.facts) == {"pid", "url", "engine", "isolation", "started_at"}
    assert host.facts.items() <= about.items()
    assert host.facts["pid"] == host.process.pid
    assert host.log.read_text().count("isolation:") == 1


def test_instances_are_told_with_their_life(alpha: E2B, beta: E2B, host: Host) -> None:
    sandbox = alpha.made(metadata={"k": "v"}, timeout=120)
    other = beta.made()
    shown = host.instance(sandbox["sandboxID"])
    assert {shown["account"], shown["dialect"], shown["template"], shown["state"]} == {
        "alpha", "e2b", "base", "running",
    }  # fmt: skip
    assert shown["metadata"] == {"k": "v"}
    assert shown["ends_ms"] - shown["created_ms"] in range(119_900, 120_200)
    assert shown["created_at"].endswith("Z")
    assert len(shown["created_at"]) == len("2026-01-01T00:00:00.000Z")
    assert shown["gone_at"] is shown["gone_reason"] is None
    beta.http.delete(f"/sandboxes/{other['sandboxID']}")
    gone = host.instance(other["sandboxID"])
    assert (gone["state"], gone["gone_reason"], gone["processes"]) == ("gone", "deleted", 0)
    assert gone["gone_ms"] >= gone["created_ms"]
    assert [one["id"] for one in host.instances(account="alpha", state="running")] == [shown["id"]]


def test_the_vendor_can_lose_or_stop_an_instance(alpha: E2B, host: Host) -> None:
    lost, stopped = alpha.made()["sandboxID"], alpha.made()["sandboxID"]
    assert host.http.post(f"/_host/instances/{lost}/kill").status_code == 204
    assert host.instance(lost)["gone_reason"] == "killed"
    assert alpha.http.get(f"/sandboxes/{lost}").status_code == 404
    assert host.http.post(f"/_host/instances/{stopped}/pause").status_code == 204
    assert host.http.post(f"/_host/instances/{stopped}/pause").status_code == 409
    assert alpha.http.get(f"/sandboxes/{stopped}").json()["state"] == "paused"
    assert host.http.post("/_host/instances/none/kill").status_code == 404


def test_calls_are_logged_without_bodies_and_secrets(alpha: E2B, host: Host) -> None:
    before = host.http.get("/_host/calls").json()["calls"]
    after = str(before[-1]["seq"] if before else 0)
    sandbox = alpha.create(key="call-1", envVars={"TOKEN": "env-secret"}).json()
    alpha.run(sandbox, "echo script-secret")
    alpha.http.get("/v2/sandboxes?metadata=query-secret")
    text = host.http.get("/_host/calls", params={"after": after}).text
    create, run, listing = json.loads(text)["calls"]
    assert create["op"] == "create"
    assert (create["account"], create["identity"], create["status"]) == ("alpha", "call-1", 201)
    assert create["instance_id"] == run["instance_id"] == sandbox["sandboxID"]
    assert (run["op"], run["account"], run["path"]) == (
        "exec", "alpha", "/process.Process/Start",
    )  # fmt: skip
    assert (listing["op"], listing["fault"]) == ("list", None)
    for secret in ("secret", alpha.key, sandbox["envdAccessToken"]):
        assert secret not in text
    only = host.http.get("/_host/calls", params={"after": after, "op": "exec", "account": "alpha"})
    assert [call["seq"] for call in only.json()["calls"]] == [run["seq"]]


BAD_FAULTS: dict[str, Any] = {
    "no object": [],
    "no fault": {},
    "unknown fault": {"fault": "earthquake"},
    "unknown operation": {"fault": "cut", "op": "dance"},
    "unknown account": {"fault": "cut", "account": "gamma"},
    "unknown field": {"fault": "cut", "after": 1},
    "negative times": {"fault": "cut", "times": -1},
    "text as times": {"fault": "cut", "times": "1"},
    "probability above one": {"fault": "cut", "probability": 1.5},
    "too many seconds": {"fault": "slow", "seconds": 1e9},
    "truth as seconds": {"fault": "slow", "seconds": True},
}


@pytest.mark.parametrize("body", BAD_FAULTS.values(), ids=BAD_FAULTS)
def test_a_fault_that_makes_no_sense_is_refused(host: Host, body: Any) -> None:
    answer = host.http.post("/_host/faults", json=body)
    assert answer.status_code == 400
    assert answer.json()["error"]
    assert host.http.get("/_host/faults").json() == {"faults": []}


@pytest.mark.parametrize(
    "path",
    ["/instances?account=gamma", "/instances?state=dead", "/instances?x=1", "/calls?after=-1"],
)
def test_a_question_that_makes_no_sense_is_refused(host: Host, path: str) -> None:
    answer = host.http.get("/_host" + path)
    assert answer.status_code == 400
    assert answer.json()["error"]


def test_broken_json_is_refused(host: Host) -> None:
    assert host.http.post("/_host/faults", content=b"{").status_code == 400


def test_a_name_of_another_machine_is_not_answered(host: Host) -> None:
    answer = host.http.get("/_host", headers={"host": "attacker.example"})
    assert answer.status_code == 403


BAD_CONFIGS: dict[str, Any] = {
    "no JSON": None,
    "no accounts": {},
    "unknown setting": {"accounts": [], "port": 1},
    "unknown dialect": {"accounts": [{"name": "a", "dialect": "x", "key": "k"}]},
    "no key": {"accounts": [{"name": "a", "dialect": "e2b"}]},
    "one key twice": {
        "accounts": [{"name": name, "dialect": "e2b", "key": "k"} for name in ("a", "b")]
    },
    "tiny template": {"accounts": [], "templates": {"t": {"vcpu": 0, "memory_mib": 1}}},
}


@pytest.mark.parametrize("config", BAD_CONFIGS.values(), ids=BAD_CONFIGS)
def test_a_bad_configuration_ends_the_start_with_one_line(tmp_path: Path, config: Any) -> None:
    settings = tmp_path / "config.json"
    settings.write_text("{" if config is None else json.dumps(config))
    command = [sys.executable, "-m", "infra.local.host", "--config", str(settings)]
    done = subprocess.run(
        [*command, "--state", str(tmp_path / "state")],
        cwd=ROOT, capture_output=True, text=True, timeout=20, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1


def test_two_hosts_do_not_share_a_state_directory(host: Host, tmp_path: Path) -> None:
    settings = tmp_path / "config.json"
    settings.write_text('{"accounts": []}')
    command = [sys.executable, "-m", "infra.local.host", "--config", str(settings)]
    done = subprocess.run(
        [*command, "--state", str(host.state)],
        cwd=ROOT, capture_output=True, text=True, timeout=20, check=False,
    )  # fmt: skip
    assert (done.returncode, "another host" in done.stderr) == (2, True)
