"""A provider host of these tests' own: a process with real sandboxes behind vendors' APIs."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from adapters import providers
from adapters.conformance import Bench
from adapters.providers.e2b.provider import build
from sandbox_router.model.secret import Secret
from sandbox_router.model.size import Shape
from tests.architecture.tree import ROOT

KEY, OPENSANDBOX_KEY = "e2b_conformance", "opensandbox_conformance"


class HostFaults:
    """Faults of the host's control plane, each for one call."""

    def __init__(self, url: str) -> None:
        self._http = httpx.Client(base_url=f"{url}/_host", trust_env=False)

    def order(self, operation: str, fault: str) -> None:
        body = {"op": operation, "fault": fault, "times": 1, "retry_after": 7}
        self._http.post("/faults", json=body).raise_for_status()

    def clear(self) -> None:
        self._http.delete("/faults").raise_for_status()

    def close(self) -> None:
        self._http.close()


@pytest.fixture(scope="session")
def host_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where a provider host listens that ends with the session."""
    folder = tmp_path_factory.mktemp("host")
    config, announced = folder / "accounts.json", folder / "host.json"
    keys = {"e2b": KEY, "opensandbox": OPENSANDBOX_KEY}
    accounts = [{"name": dialect, "dialect": dialect, "key": key} for dialect, key in keys.items()]
    config.write_text(json.dumps({"accounts": accounts}))
    options = {
        "--port": 0,
        "--state": folder / "state",
        "--config": config,
        "--announce": announced,
    }
    words = (str(word) for option in options.items() for word in option)
    command = [sys.executable, "-m", "infra.local.host", *words]
    with (folder / "log").open("wb") as log:
        host = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)
    try:
        yield _announced(host, announced, folder / "log")
    finally:
        host.terminate()
        host.wait(20)


def _announced(host: subprocess.Popen[bytes], announced: Path, log: Path) -> str:
    end = time.monotonic() + 15
    while time.monotonic() < end and host.poll() is None:
        if announced.exists():
            return str(json.loads(announced.read_text())["url"])
        time.sleep(0.02)
    raise AssertionError(f"the provider host did not start: {log.read_text()}")


@pytest.fixture(scope="session")
def bench(host_url: str) -> Iterator[Bench]:
    """The host's account under test."""
    profile = providers.profile("e2b")
    settings = {"api_url": f"{host_url}/e2b", "sandbox_url": f"{host_url}/e2b/sandbox"}
    account = build(profile, Secret(KEY), settings)
    stranger = build(profile, Secret("e2b_stranger"), settings)
    faults = HostFaults(host_url)
    tested = Bench(
        account,
        profile,
        "base-1x1",
        Shape.of(1, 1),
        faults=faults,
        stranger=stranger,
        dials=False,  # the host has no proxy to the ports of its instances
    )
    yield tested
    tested.close()
    for opened in (account, stranger, faults):
        opened.close()
