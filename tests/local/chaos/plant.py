"""Router and provider host as an operator runs them, and when they were down."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from infra.local.process import Process

ROOT = Path(__file__).resolve().parents[3]
START_SECONDS = 30.0
STARTS = 5
FAULTS: tuple[Mapping[str, Any], ...] = (
    {"fault": "capacity", "op": "create", "probability": 0.08},
    {"fault": "made_503", "op": "create", "probability": 0.04},
    {"fault": "late", "op": "create", "probability": 0.02, "seconds": 8},
    {"fault": "lost_answer", "op": "*", "probability": 0.03},
    {"fault": "error_503", "op": "*", "probability": 0.03},
    {"fault": "cut", "op": "*", "probability": 0.02},
    {"fault": "slow", "op": "*", "probability": 0.02, "seconds": 1.5},
    {"fault": "hang", "op": "*", "probability": 0.004, "seconds": 12},
    {"fault": "list_lag", "probability": 0.5, "seconds": 4},
)
"""A vendor's bad day: every eighth call goes wrong, and lists are as late as they may be."""


class Plant:
    """One STATE, its router on one port and its host; both are started again as they were."""

    def __init__(self, root: Path, seed: int, *, faulty: bool = True) -> None:
        self.root, self.state, self.seed = root, root / "state", seed
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.router: subprocess.Popen[bytes] | None = None
        self.spawned = 0
        self.starts: list[float] = []
        self.refusals: list[str] = []
        self.ledger: dict[str, dict[str, Any]] = {}
        self.died_with_host: set[str] = set()
        self.faulty = faulty
        self._down: dict[str, float] = {}
        self._outages: list[tuple[float, float]] = []
        self._host_url = ""
        self._hosts: list[subprocess.Popen[bytes]] = []
        self._lock = threading.Lock()

    @property
    def key(self) -> str:
        """The API key."""
        return (self.state / "key").read_text().strip()

    # The router.

    def start_router(self) -> None:
        """Run it, again if it refuses, until it is healthy; it brings a host where none is."""
        for _ in range(STARTS):
            if self._start_router():
                self._up("router")
                self._take_host()
                return
            self.refusals.append(self._output().read_text(errors="replace")[-300:])
        raise AssertionError(f"the router does not start: {self.refusals}")

    def _start_router(self) -> bool:
        began = time.monotonic()
        router = self._spawn_router()
        while time.monotonic() < began + START_SECONDS and router.poll() is None:
            if _answers(f"{self.url}/v1/health"):
                self.starts.append(time.monotonic() - began)
                return True
            time.sleep(0.02)
        self.kill_router()
        return False

    def _spawn_router(self) -> subprocess.Popen[bytes]:
        self.spawned += 1
        env = {**os.environ, "PORT": str(self.port), "STATE": str(self.state)}
        with self._output().open("wb") as out:
            self.router = subprocess.Popen(
                [sys.executable, "-m", "infra.local"],
                cwd=ROOT,
                env=env,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        return self.router

    def kill_starting_router(self, seconds: float) -> None:
        """It dies somewhere in its start."""
        self._spawn_router()
        time.sleep(seconds)
        self.kill_router()

    def _output(self) -> Path:
        return self.root / f"router-{self.spawned}.txt"

    def kill_router(self) -> None:
        """As an OOM killer does."""
        assert self.router is not None
        self._went_down("router")
        self.router.kill()
        self.router.wait(10)

    @contextmanager
    def router_stopped(self) -> Iterator[None]:
        """As a machine does that has no time for it."""
        assert self.router is not None
        self._went_down("router")
        self.router.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.router.send_signal(signal.SIGCONT)
            self._up("router")

    # The host.

    @property
    def host(self) -> Process | None:
        """The host's process, if it lives."""
        try:
            return Process.of(int(json.loads((self.state / "host.json").read_text())["pid"]))
        except (OSError, ValueError):
            return None

    def start_host(self) -> None:
        """At the address it had, where the pools look for it."""
        with (self.root / "host.txt").open("ab") as out:
            child = subprocess.Popen(
                [
                    *(sys.executable, "-m", "infra.local.host"),
                    *("--port", self._host_url.rpartition(":")[2]),
                    *("--state", str(self.state / "host")),
                    *("--config", str(self.state / "host-accounts.json")),
                    *("--announce", str(self.state / "host.json")),
                ],
                cwd=ROOT,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        self._hosts.append(child)
        deadline = time.monotonic() + START_SECONDS
        while not _answers(f"{self._host_url}/_host"):
            assert child.poll() is None, (self.root / "host.txt").read_text()[-500:]
            assert time.monotonic() < deadline, "the host does not start"
            time.sleep(0.02)
        self._take_host()

    def _take_host(self) -> None:
        """Know where it is now, and give a new one its faults."""
        self._host_url = str(json.loads((self.state / "host.json").read_text())["url"])
        self._up("host")
        ordered = self._control("GET", "/faults").json()["faults"]
        if self.faulty and not ordered:
            for n, fault in enumerate(FAULTS):
                self._control("POST", "/faults", json={**fault, "seed": self.seed + n})

    def kill_host(self) -> None:
        """The vendor's data centre burns down, with everything that runs there."""
        host = self.host
        assert host is not None
        self.look()
        self._went_down("host")
        host.signal(signal.SIGKILL)
        assert host.ended_within(10)
        now = time.time_ns() // 1_000_000
        for one in self.ledger.values():
            if one["gone_ms"] is None:
                one["gone_ms"] = now
                self.died_with_host.add(one["id"])

    @contextmanager
    def host_stopped(self) -> Iterator[None]:
        """The vendor answers nobody for a while."""
        host = self.host
        assert host is not None
        self._went_down("host")
        host.signal(signal.SIGSTOP)
        try:
            yield
        finally:
            host.signal(signal.SIGCONT)
            self._up("host")

    def start_router_before_host(self, seconds: float) -> None:
        """It starts while the host hangs, which comes back in the meantime."""
        host = self.host
        assert host is not None
        host.signal(signal.SIGSTOP)
        waking = threading.Timer(seconds, host.signal, (signal.SIGCONT,))
        waking.start()
        self.start_router()
        waking.join()

    def calm(self) -> None:
        """No faults any more."""
        self.faulty = False
        self._control("DELETE", "/faults")

    def look(self) -> list[dict[str, Any]]:
        """Write down every instance the host knows; those that live."""
        found = self._control("GET", "/instances").json()["instances"]
        self.ledger.update({one["id"]: one for one in found})
        return [one for one in found if one["gone_ms"] is None]

    def _control(self, method: str, path: str, **more: Any) -> httpx.Response:
        url = f"{self._host_url}/_host{path}"
        answer = httpx.request(method, url, timeout=30, trust_env=False, **more)
        return answer.raise_for_status()

    # When something was down.

    def _went_down(self, name: str) -> None:
        with self._lock:
            self._down.setdefault(name, time.time())

    def _up(self, name: str) -> None:
        with self._lock:
            if name in self._down:
                self._outages.append((self._down.pop(name), time.time()))

    def down(self, low: float, high: float) -> float:
        """Seconds between two moments in which not both were up."""
        with self._lock:
            cut = sorted((max(low, a), min(high, b)) for a, b in self._outages)
        total, reached = 0.0, low
        for a, b in cut:
            total += max(0.0, b - max(a, reached))
            reached = max(reached, b)
        return total

    def end(self) -> None:
        """End both, in whatever state they are."""
        if self.router is not None and self.router.poll() is None:
            self.router.kill()
            self.router.wait(10)
        if host := self.host:
            host.signal(signal.SIGCONT)
            host.signal(signal.SIGTERM)
            assert host.ended_within(20)
        for child in self._hosts:
            child.wait(10)


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=2, trust_env=False).is_success
    except httpx.TransportError:
        return False


def free_port() -> int:
    """A port nobody has now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
