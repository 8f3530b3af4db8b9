"""Lifetimes and ends: the host alone enforces them, and nothing outlives it."""

from __future__ import annotations

import secrets
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.local.host.hosting import E2B, Host, alive, until


def _marker() -> str:
    """Return a number of seconds that no other sleep here sleeps."""
    return str(10_000_000 + secrets.randbelow(80_000_000))


def _sleeper(client: E2B, **body: Any) -> tuple[str, str]:
    """Make a sandbox with a background process; return its id and the process's marker."""
    sandbox, marker = client.made(**body), _marker()
    assert client.run(sandbox, f"nohup setsid sleep {marker} > /dev/null 2>&1 &")[0] == 0
    until(lambda: alive(marker))
    return sandbox["sandboxID"], marker


def _late_ms(shown: dict[str, Any]) -> int:
    return int(shown["gone_ms"] - shown["ends_ms"])


def test_the_end_of_its_lifetime_ends_a_sandbox_and_its_processes(alpha: E2B) -> None:
    instance_id, marker = _sleeper(alpha, timeout=1)
    until(lambda: alpha.host.instance(instance_id)["state"] == "gone")
    shown = alpha.host.instance(instance_id)
    assert shown["gone_reason"] == "lifetime"
    assert 0 <= _late_ms(shown) <= 1000
    assert alive(marker) == []
    assert alpha.http.get(f"/sandboxes/{instance_id}").status_code == 404


def test_gone_is_said_only_when_processes_and_directory_are_gone(alpha: E2B) -> None:
    instance_id, marker = _sleeper(alpha)
    folder = alpha.host.state / "instances" / instance_id
    assert folder.is_dir()
    assert alpha.http.delete(f"/sandboxes/{instance_id}").status_code == 204
    assert (alive(marker), folder.exists()) == ([], False)


def test_a_directory_its_owner_locked_is_removed_too(alpha: E2B) -> None:
    sandbox = alpha.made()
    alpha.run(sandbox, "mkdir -p a/b && touch a/b/c && ln -s /usr a/usr && chmod 0 a/b a .")
    assert alpha.http.delete(f"/sandboxes/{sandbox['sandboxID']}").status_code == 204
    assert not (alpha.host.state / "instances" / sandbox["sandboxID"]).exists()


def test_a_moved_end_is_the_one_that_counts(alpha: E2B) -> None:
    longer, shorter = alpha.made(timeout=1)["sandboxID"], alpha.made(timeout=60)["sandboxID"]
    assert alpha.http.post(f"/sandboxes/{longer}/timeout", json={"timeout": 60}).status_code == 204
    assert alpha.http.post(f"/sandboxes/{shorter}/timeout", json={"timeout": 1}).status_code == 204
    until(lambda: alpha.host.instance(shorter)["state"] == "gone")
    time.sleep(0.3)
    assert alpha.host.instance(longer)["state"] == "running"


def test_a_paused_sandbox_does_not_time_out(alpha: E2B) -> None:
    instance_id = alpha.made(timeout=1)["sandboxID"]
    alpha.http.post(f"/sandboxes/{instance_id}/pause")
    time.sleep(1.5)
    assert alpha.host.instance(instance_id)["state"] == "paused"
    joined = alpha.http.post(f"/v2/sandboxes/{instance_id}/connect", json={"timeout": 1})
    assert joined.status_code == 201
    until(lambda: alpha.host.instance(instance_id)["gone_reason"] == "lifetime")


def test_auto_pause_pauses_at_the_end(alpha: E2B) -> None:
    instance_id, marker = _sleeper(alpha, timeout=1, autoPause=True)
    until(lambda: alpha.host.instance(instance_id)["state"] == "paused")
    assert len(alive(marker)) == 1
    assert alpha.http.delete(f"/sandboxes/{instance_id}").status_code == 204
    assert alive(marker) == []


def test_a_command_that_is_not_read_does_not_hold_up_the_end(alpha: E2B) -> None:
    sandbox = alpha.made()
    headers = alpha.into(sandbox) | {"content-type": "application/connect+json"}
    body = b'{"process":{"cmd":"yes"},"stdin":false}'
    content = b"\0" + len(body).to_bytes(4, "big") + body
    with alpha.http.stream(
        "POST", "/sandbox/process.Process/Start", content=content, headers=headers
    ):
        time.sleep(0.3)
        other = E2B(alpha.host)
        began = time.monotonic()
        assert other.http.delete(f"/sandboxes/{sandbox['sandboxID']}").status_code == 204
        other.close()
        assert time.monotonic() - began < 2


def test_two_hundred_are_made_at_once_and_end_on_time(
    new_host: Callable[..., Host], record_property: Callable[[str, object], None]
) -> None:
    host = new_host()
    clients = [E2B(host) for _ in range(32)]

    def make(number: int) -> tuple[float, str]:
        began = time.monotonic()
        # All end at about the same moment, whenever they were made.
        timeout = max(1, round(ends - time.monotonic()))
        sandbox = clients[number % 32].made(timeout=timeout)
        return time.monotonic() - began, sandbox["sandboxID"]

    began = time.monotonic()
    ends = began + 6
    with ThreadPoolExecutor(32) as pool:
        made = list(pool.map(make, range(200)))
    took = time.monotonic() - began
    until(lambda: len(host.instances(state="gone")) == 200, 15)
    late = sorted(_late_ms(one) for one in host.instances())
    for client in clients:
        client.close()
    assert len({instance_id for _, instance_id in made}) == 200
    record_property("seconds_for_200", took)
    record_property("late_ms_max", late[-1])
    assert (late[0] >= 0, late[-1] <= 1000) == (True, True), late[-5:]


@pytest.mark.parametrize("tier", ["bubblewrap", "unshare", "process"])
@pytest.mark.parametrize("paused", [False, True], ids=["running", "paused"])
def test_nothing_survives_a_killed_host(
    new_host: Callable[..., Host], tier: str, paused: bool
) -> None:
    host = new_host("--isolation", tier)
    client = E2B(host)
    instance_id, marker = _sleeper(client)
    if paused:
        assert client.http.post(f"/sandboxes/{instance_id}/pause").status_code == 204
    client.close()
    host.stop(signal.SIGKILL)
    until(lambda: not alive(marker), 3)
    until(lambda: not alive(str(host.state)), 3)


@pytest.mark.parametrize("tier", ["bubblewrap", "unshare", "process"])
def test_a_stopped_host_ends_all_within_three_seconds(
    new_host: Callable[..., Host], tier: str
) -> None:
    host = new_host("--isolation", tier)
    client = E2B(host)
    markers = [_sleeper(client)[1] for _ in range(5)]
    client.close()
    assert host.stop() < 3
    assert host.process.returncode == 0
    assert [alive(marker) for marker in markers] == [[]] * 5
    assert not host.announce.exists()
    assert list((host.state / "instances").iterdir()) == []
    assert "Traceback" not in host.log.read_text()


def test_a_new_host_clears_what_a_killed_one_left(new_host: Callable[..., Host]) -> None:
    host = new_host()
    client = E2B(host)
    client.made()
    client.close()
    host.stop(signal.SIGKILL)
    assert list((host.state / "instances").iterdir())
    again = Host("--state", str(host.state))  # the later option counts
    try:
        again.started()
        assert list((host.state / "instances").iterdir()) == []
        assert again.instances() == []
    finally:
        again.close()
