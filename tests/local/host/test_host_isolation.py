"""Walls: what a sandbox sees, in every tier, of a host that is root and of one that is not."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from infra.local.host.spawn import children_of
from tests.conftest import MISSING_HERE
from tests.local.host.hosting import CONFIG, E2B, NOBODY, Host, until

TEMPLATES = {"base": {"vcpu": 1, "memory_mib": 128, "disk_mib": 16}}


@pytest.fixture(
    scope="module",
    params=[(tier, user) for user in ("self", "nobody") for tier in ("bubblewrap", "unshare")],
    ids="-".join,
)
def walled(request: pytest.FixtureRequest) -> Iterator[Host]:
    tier, user = request.param
    if tier == "bubblewrap" and shutil.which("bwrap") is None:
        pytest.skip(f"{MISSING_HERE} bubblewrap")
    uid = NOBODY if user == "nobody" else None
    host = Host("--isolation", tier, config=CONFIG | {"templates": TEMPLATES}, uid=uid)
    yield host.started()
    host.close()


@pytest.fixture
def client(walled: Host) -> Iterator[E2B]:
    made = E2B(walled)
    yield made
    made.close()


@pytest.fixture
def sandbox(client: E2B) -> dict[str, Any]:
    return client.made()


def test_the_tier_is_declared(walled: Host) -> None:
    about = walled.http.get("/_host").json()
    assert about["isolation"] == "container"
    assert {"pid", "mount", "ipc", "uts", "user"} <= set(about["walls"])


def test_only_its_own_processes_are_seen(client: E2B, sandbox: dict[str, Any]) -> None:
    code, output = client.run(sandbox, f"ps -eo pid,args; kill -0 {os.getpid()} || echo none")
    assert "none" in output
    assert "pytest" not in output
    assert code == 0


def test_neither_the_hosts_home_nor_its_state_are_seen(
    client: E2B, sandbox: dict[str, Any]
) -> None:
    secret = client.host.directory
    script = f"ls {secret} {client.host.state} /root /work /var /opt /srv /sys /boot 2>&1; ls /"
    _, output = client.run(sandbox, script)
    assert output.count("cannot access") == 9
    assert set(output.split("\n")[9:]) - {""} <= {
        "bin", "dev", "etc", "home", "lib", "lib32", "lib64", "libx32", "proc", "run", "sbin",
        "tmp", "usr",
    }  # fmt: skip


def test_another_sandboxes_files_are_not_seen(client: E2B, sandbox: dict[str, Any]) -> None:
    client.run(sandbox, "echo private > ~/mine; echo private > /tmp/mine")
    other = client.made()
    assert client.run(other, "ls -A ~ /tmp; find / -name mine 2> /dev/null")[1] == (
        "/home/user:\n\n/tmp:\n"
    )


def test_system_directories_cannot_be_written(client: E2B, sandbox: dict[str, Any]) -> None:
    script = "for d in / /usr /etc /bin /home /proc/sys/kernel; do touch $d/x 2>&1; done; "
    script += "for f in /proc/sys/kernel/core_pattern /proc/sysrq-trigger /etc/passwd; do "
    script += "echo x 2>&1 > $f; done; true"
    _, output = client.run(sandbox, script)
    assert len(output.splitlines()) == 9, output
    assert client.http.post(
        "/sandbox/files?path=/etc/x", files={"file": b"x"}, headers=client.into(sandbox)
    ).status_code == 500  # fmt: skip


def test_it_has_no_powers(client: E2B, sandbox: dict[str, Any]) -> None:
    _, output = client.run(
        sandbox, "id -u; grep CapEff /proc/self/status; umount /usr 2>&1; mount -o remount,rw /usr"
    )
    assert output.startswith("1000\nCapEff:\t0000000000000000\n")
    assert client.run(sandbox, "touch /usr/x 2> /dev/null || echo still closed")[1] == (
        "still closed\n"
    )


def test_pid_one_cannot_be_killed_from_inside(client: E2B, sandbox: dict[str, Any]) -> None:
    client.run(sandbox, "kill -9 1; kill -9 -1")
    assert client.run(sandbox, "echo still here") == (0, "still here\n")


def test_orphans_leave_no_zombies(client: E2B, sandbox: dict[str, Any]) -> None:
    client.run(sandbox, "for i in 1 2 3 4 5; do (sleep 0.1 &) ; done")
    until(lambda: "Z" not in client.run(sandbox, "sleep 0.1; ps -eo stat")[1])


def test_the_network_can_be_cut_for_real(client: E2B) -> None:
    script = "cat /proc/net/dev | tail -n +3 | cut -d: -f1 | tr -d ' '"
    cut = client.made(allow_internet_access=False)
    assert client.run(cut, script)[1] == "lo\n"
    denied = client.made(network={"denyOut": ["0.0.0.0/0"]})
    assert client.run(denied, script)[1] == "lo\n"
    port = client.host.url.rpartition(":")[2]
    knock = f"(: < /dev/tcp/127.0.0.1/{port}) 2> /dev/null && echo open || echo closed"
    assert client.run(cut, knock)[1] == "closed\n"
    assert client.run(client.made(), knock)[1] == "open\n"


def test_a_server_in_the_background_is_reachable(client: E2B, sandbox: dict[str, Any]) -> None:
    perl = "use IO::Socket::INET; $s=IO::Socket::INET->new(Listen=>5,LocalAddr=>'127.0.0.1')"
    perl += " or die; $|=1; print $s->sockport, qq(\\n); while($c=$s->accept){print $c qq(hi\\n)}"
    if client.run(sandbox, "perl -MIO::Socket::INET -e 1")[0]:
        pytest.skip(f"{MISSING_HERE} perl, to serve from inside a sandbox")
    client.run(sandbox, f'nohup perl -e "{perl.replace("$", chr(92) + "$")}" > port &')
    until(lambda: client.run(sandbox, "cat port")[1].strip())
    port = client.run(sandbox, "cat port")[1].strip()
    other = client.made()
    assert client.run(other, f"head -1 < /dev/tcp/127.0.0.1/{port}")[1] == "hi\n"


def test_limits_are_on_every_process(client: E2B, sandbox: dict[str, Any]) -> None:
    _, output = client.run(sandbox, "ulimit -d; ulimit -n; ulimit -u; ulimit -c")
    assert output.split() == [str(128 * 1024), "4096", "1024", "0"]
    code, _ = client.run(sandbox, "x=$(head -c 200000000 /dev/zero | tr '\\0' x); echo ${#x}")
    assert code != 0
    code, _ = client.run(sandbox, "head -c 30000000 /dev/zero > big")
    assert code != 0


def test_an_instance_whose_namespace_dies_is_gone(client: E2B, sandbox: dict[str, Any]) -> None:
    client.run(sandbox, "nohup sleep 1000 > /dev/null 2>&1 &")
    before = client.host.instance(sandbox["sandboxID"])
    assert (before["state"], before["processes"]) == ("running", 1)
    (holder,) = set(children_of(client.host.process.pid)) & set(_holders(client, sandbox))
    os.kill(holder, signal.SIGKILL)
    until(lambda: client.host.instance(sandbox["sandboxID"])["gone_reason"] == "killed")


def _holders(client: E2B, sandbox: dict[str, Any]) -> list[int]:
    """Return the processes whose child has the sandbox's home mounted."""
    mount = f"{sandbox['sandboxID']}/home /home/user"
    found = []
    for parent in children_of(client.host.process.pid):
        for child in children_of(parent):
            with suppress(OSError):
                if mount in Path(f"/proc/{child}/mountinfo").read_text():
                    found.append(parent)
    return found


def test_the_process_tier_declares_itself_and_cannot_cut_the_network() -> None:
    host = Host("--isolation", "process").started()
    client = E2B(host)
    try:
        about = host.http.get("/_host").json()
        assert (about["isolation"], about["walls"], about["cuts_network"]) == ("process", [], False)
        assert client.create(allow_internet_access=False).status_code == 400
        sandbox = client.made()
        assert client.run(sandbox, "cd ~ && echo x > f && pwd -P")[1].strip() == str(
            host.state / "instances" / sandbox["sandboxID"] / "root/home/user"
        )
        read = client.http.get("/sandbox/files?path=f", headers=client.into(sandbox))
        assert read.content == b"x\n"
    finally:
        client.close()
        host.close()
