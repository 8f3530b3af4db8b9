"""A real local deployment for a test: the router and the provider host as their own processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from infra.local.process import Process
from infra.local.state import Card

ROOT = Path(__file__).resolve().parents[3]
COMMAND = [sys.executable, "-m", "infra.local"]


def eventually(check: Callable[[], Any], seconds: float, every: float = 0.05) -> Any:
    """The first truthy value of `check`, or a failure when there is none in time."""
    deadline = time.monotonic() + seconds
    while True:
        if found := check():
            return found
        if time.monotonic() >= deadline:
            raise AssertionError(f"not within {seconds} s; last seen: {found!r}")
        time.sleep(every)


class Deployment:
    """One STATE folder and the processes on it."""

    def __init__(self, root: Path, **env: str) -> None:
        self.root = root
        self.state = root / "state"
        self.env = {**os.environ, "PORT": "0", "STATE": str(self.state), **env}
        self.command = COMMAND
        self.router: subprocess.Popen[bytes] | None = None
        self.starts = 0
        self.start_seconds = 0.0
        self.api = httpx.Client()
        self.host = httpx.Client()

    def start(self, **env: str) -> Deployment:
        """Run the router and wait until it is healthy."""
        self.starts += 1
        began = time.monotonic()
        with self.output.open("wb") as out:
            self.router = subprocess.Popen(
                self.command,
                cwd=ROOT,
                env=self.env | env,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        card = eventually(self._card, 20, every=0.02)
        key = (self.state / "key").read_text().strip()
        limits = httpx.Limits(max_connections=100)
        self.api.close()
        self.api = httpx.Client(
            base_url=card.url, headers={"Authorization": f"Bearer {key}"}, timeout=60, limits=limits
        )
        eventually(self._healthy, 20, every=0.02)
        self.start_seconds = time.monotonic() - began
        self.host.close()
        self.host = httpx.Client(base_url=self.host_url, timeout=30)
        return self

    @property
    def output(self) -> Path:
        """What the router printed."""
        return self.root / f"router-{self.starts}.txt"

    def _card(self) -> Card | None:
        assert self.router is not None
        assert self.router.poll() is None, self.output.read_text()
        card = Card.read(self.state / "router.json")
        return card if card and card.process.pid == self.router.pid else None

    def _healthy(self) -> bool:
        try:
            return self.api.get("/v1/health").status_code == 200
        except httpx.TransportError:
            return False

    @property
    def announced(self) -> dict[str, Any]:
        """What the provider host says about itself."""
        found: dict[str, Any] = json.loads((self.state / "host.json").read_text())
        return found

    @property
    def host_url(self) -> str:
        """Where the provider host listens."""
        return str(self.announced["url"])

    def signal(self, number: signal.Signals, wait: float = 10) -> int:
        """Signal the router and wait for its end."""
        assert self.router is not None
        self.router.send_signal(number)
        return self.ended(wait)

    def signal_restart(self) -> None:
        """Ctrl-C and a new start."""
        self.signal(signal.SIGINT)
        self.start()

    def ended(self, wait: float = 10) -> int:
        """Wait for the router's end."""
        assert self.router is not None
        return self.router.wait(wait)

    def run(self, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Run the command to its end."""
        return subprocess.run(
            [*COMMAND, *args],
            cwd=ROOT,
            env=self.env | env,
            capture_output=True,
            text=True,
            timeout=90,
        )

    # What tests ask the router and the host.

    def create(self, key: str | None = None, **body: Any) -> httpx.Response:
        """POST /v1/sandboxes."""
        headers = {"Idempotency-Key": key} if key else {}
        return self.api.post("/v1/sandboxes", json={"ttl_seconds": 300, **body}, headers=headers)

    def order(self, **body: Any) -> list[str]:
        """The pools a create would ask now, in order: those that refused one just now are last."""
        route = self.api.post("/v1/route", json=body).json()
        return [candidate["pool_id"] for candidate in route["candidates"]]

    def get(self, sandbox_id: str) -> dict[str, Any]:
        """One sandbox."""
        found: dict[str, Any] = self.api.get(f"/v1/sandboxes/{sandbox_id}").json()
        return found

    def destroy(self, sandbox_id: str, seconds: float = 15) -> None:
        """DELETE, and wait until it is confirmed."""
        url = f"/v1/sandboxes/{sandbox_id}"
        eventually(lambda: self.api.delete(url).status_code == 204, seconds, every=0.2)

    def instances(self, alive: bool = True, **match: Any) -> list[dict[str, Any]]:
        """What the host has."""
        found = self.host.get("/_host/instances").json()["instances"]
        return [
            one
            for one in found
            if (not alive or one["gone_at"] is None)
            and all(one.get(name) == value for name, value in match.items())
        ]

    def calls(self, after: int = 0, **match: str) -> list[dict[str, Any]]:
        """What was asked of the host since call number `after`."""
        found = self.host.get("/_host/calls", params={"after": str(after)}).json()["calls"]
        return [one for one in found if all(one.get(k) == v for k, v in match.items())]

    def last_call(self) -> int:
        """The number of the newest call."""
        return max((call["seq"] for call in self.calls()), default=0)

    @contextmanager
    def fault(self, fault: str, **order: Any) -> Iterator[dict[str, Any]]:
        """Order a fault, and cancel it in the end."""
        ordered = self.host.post("/_host/faults", json={"fault": fault, **order})
        assert ordered.is_success, ordered.text
        try:
            yield ordered.json()
        finally:
            self.host.delete(f"/_host/faults/{ordered.json()['id']}")

    def close(self) -> None:
        """Stop it as its user would."""
        stopped = self.run("stop")
        self.end()
        assert stopped.returncode == 0, stopped.stdout + stopped.stderr

    def end(self) -> None:
        """End every process at once, whatever state the test left them in."""
        if self.router is not None and self.router.poll() is None:
            self.router.kill()
            self.router.wait(10)
        if (self.state / "host.json").exists() and (host := Process.of(self.announced["pid"])):
            host.signal(signal.SIGTERM)
            assert host.ended_within(20)
        self.api.close()
        self.host.close()
