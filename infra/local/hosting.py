"""The provider host beside the router: found again or started, and stopped, from outside."""

from __future__ import annotations

import fcntl
import json
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from infra.local.process import Process
from infra.local.state import State

START_SECONDS = 10.0
STOP_SECONDS = 15.0
ANSWER_SECONDS = 2.0
ROOT = Path(__file__).resolve().parents[2]


class HostFailed(Exception):
    """The provider host did not start, or cannot be reached; the text says why."""


@dataclass(frozen=True)
class Host:
    """A living provider host."""

    process: Process
    url: str
    engine: str
    isolation: str

    def ask(self, path: str) -> dict[str, Any]:
        """An answer of its control plane; raises HostFailed."""
        try:
            answer = httpx.get(f"{self.url}/_host{path}", timeout=ANSWER_SECONDS, trust_env=False)
            found: dict[str, Any] = answer.raise_for_status().json()
        except (httpx.HTTPError, ValueError) as error:
            raise HostFailed(f"the provider host at {self.url} does not answer") from error
        return found

    def alive(self) -> int:
        """How many instances live there."""
        return int(self.ask("")["instances"])


def find(state: State) -> Host | None:
    """The host that serves this folder: announced, alive, and the one that answers."""
    try:
        said = json.loads(state.host_json.read_text())
        process = Process.of(int(said["pid"]))
        if process is None:
            return None
        host = Host(process, said["url"], said["engine"], said["isolation"])
        return host if host.ask("")["pid"] == process.pid else None
    except (OSError, ValueError, KeyError, TypeError, HostFailed):
        return None


def start(state: State) -> Host:
    """A new host, or the one that is there after all: it is waited for, and never forgotten."""
    child: subprocess.Popen[bytes] | None = None
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if (host := find(state)) is not None:
            return host
        if (child is None or child.poll() is not None) and not held(state):
            if child is not None:
                break
            child = _spawn(state)
        time.sleep(0.01)
    if held(state):
        raise HostFailed(unanswered(state))
    if child is not None:
        child.kill()
    raise HostFailed(f"the provider host did not start; its last words: {_last_line(state)}")


def _spawn(state: State) -> subprocess.Popen[bytes]:
    """In a session of its own: no signal meant for the router reaches it."""
    with state.host_log.open("ab") as log:
        return subprocess.Popen(
            [
                *(sys.executable, "-m", "infra.local.host"),
                *("--port", "0", "--state", str(state.host)),
                *("--config", str(state.host_config), "--announce", str(state.host_json)),
            ],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            umask=0o022,  # what sandboxes inherit is not this process's business
        )


def held(state: State) -> bool:
    """Does a host hold its folder, whether or not it answers or has announced itself?"""
    try:
        with (state.host / "lock").open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def unanswered(state: State) -> str:
    """What to say of a host that holds its folder and does not answer."""
    return (
        f"the provider host of {state.host} does not answer ({state.host_json} names its process)"
    )


def stop(host: Host) -> bool:
    """End it with all its instances; whether it went."""
    host.process.signal(signal.SIGTERM)
    return host.process.ended_within(STOP_SECONDS)


def _last_line(state: State) -> str:
    lines = state.host_log.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else "none"
