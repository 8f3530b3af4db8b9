"""A provider host of a test's own: started, asked and ended like a user's."""

from __future__ import annotations

import base64
import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conftest import MISSING_HERE

ROOT = Path(__file__).resolve().parents[3]
KEYS = {"alpha": "e2b_alpha-key", "beta": "e2b_beta-key"}
NOBODY = 65534
CONFIG: dict[str, Any] = {
    "accounts": [{"name": name, "dialect": "e2b", "key": key} for name, key in KEYS.items()]
}


class Host:
    """A running host process and a client of its control plane."""

    def __init__(self, *arguments: str, config: object = CONFIG, uid: int | None = None) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="provider-host-"))
        self.state = self.directory / "state"
        self.state.mkdir()
        settings = self.directory / "config.json"
        settings.write_text(json.dumps(config))
        self.announce = self.state / "host.json"
        self.log = self.directory / "log"
        command = [*interpreter(uid), "-W", "error", "-m", "infra.local.host"]
        command += ["--state", str(self.state), "--config", str(settings)]
        command += ["--announce", str(self.announce), *arguments]
        if uid is not None:
            for path in (self.directory, self.state, settings):
                os.chown(path, uid, uid)
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(command, cwd=ROOT, env=_env(), stderr=log, stdout=log)
        self.facts: dict[str, Any] = {}
        self.http = httpx.Client(timeout=30)

    def started(self) -> Host:
        """Wait until it listens."""
        until(lambda: self.announce.exists() or self.process.poll() is not None, 20)
        if not self.announce.exists():
            pytest.fail(f"the host did not start: {self.log.read_text()}")
        self.facts = json.loads(self.announce.read_text())
        self.http.base_url = httpx.URL(self.facts["url"])
        return self

    @property
    def url(self) -> str:
        return str(self.facts["url"])

    def stop(self, number: int = signal.SIGTERM) -> float:
        """End it and return how long that took."""
        began = time.monotonic()
        if self.process.poll() is None:
            self.process.send_signal(number)
        self.process.wait(20)
        self.http.close()
        return time.monotonic() - began

    def close(self) -> None:
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def instances(self, **params: str) -> list[dict[str, Any]]:
        answer = self.http.get("/_host/instances", params=params)
        assert answer.status_code == 200, answer.text
        found: list[dict[str, Any]] = answer.json()["instances"]
        return found

    def instance(self, instance_id: str) -> dict[str, Any]:
        return next(one for one in self.instances() if one["id"] == instance_id)

    def order(self, **fault: Any) -> str:
        answer = self.http.post("/_host/faults", json=fault)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])


class E2B:
    """E2B's wire API as plainly as a client can speak it."""

    def __init__(self, host: Host, account: str = "alpha") -> None:
        self.host = host
        self.key = KEYS[account]
        self.http = httpx.Client(
            base_url=f"{host.url}/e2b", headers={"X-API-Key": self.key}, timeout=30
        )

    def close(self) -> None:
        self.http.close()

    def create(self, key: str | None = None, **body: Any) -> httpx.Response:
        headers = {} if key is None else {"Idempotency-Key": key}
        body = {"templateID": "base", "timeout": 60} | body
        return self.http.post("/v2/sandboxes", json=body, headers=headers)

    def made(self, **body: Any) -> dict[str, Any]:
        answer = self.create(**body)
        assert answer.status_code == 201, answer.text
        sandbox: dict[str, Any] = answer.json()
        return sandbox

    def listed(self, **params: Any) -> list[str]:
        answer = self.http.get("/v2/sandboxes", params=params)
        assert answer.status_code == 200, answer.text
        return [one["sandboxID"] for one in answer.json()]

    def into(self, sandbox: dict[str, Any]) -> dict[str, str]:
        """Return the headers for calls into a sandbox."""
        token = sandbox.get("envdAccessToken") or ""
        return {"e2b-sandbox-id": sandbox["sandboxID"], "X-Access-Token": token}

    def run(self, sandbox: dict[str, Any], script: str, timeout: float = 20) -> tuple[int, str]:
        """Run a script and return its exit code and all its output."""
        message = {"process": {"cmd": "/bin/bash", "args": ["-c", script]}, "stdin": False}
        frames = self.start(sandbox, message, timeout)
        output = b""
        for frame in frames:
            event = frame.get("event", {})
            for data in event.get("data", {}).values():
                output += base64.b64decode(data)
            if "end" in event:
                return event["end"].get("exitCode", 0), output.decode()
        pytest.fail(f"no end: {frames}")

    def start(
        self, sandbox: dict[str, Any], message: dict[str, Any], timeout: float = 20
    ) -> list[dict[str, Any]]:
        """Start a process and return every frame of its stream."""
        data = json.dumps(message).encode()
        answer = self.http.post(
            "/sandbox/process.Process/Start",
            content=b"\0" + len(data).to_bytes(4, "big") + data,
            headers=self.into(sandbox)
            | {
                "content-type": "application/connect+json",
                "connect-timeout-ms": str(int(timeout * 1000)),
            },
        )
        assert answer.status_code == 200, answer.text
        return frames_of(answer.content)

    def call(self, sandbox: dict[str, Any], method: str, **message: Any) -> httpx.Response:
        return self.http.post(f"/sandbox/{method}", json=message, headers=self.into(sandbox))


def frames_of(content: bytes) -> list[dict[str, Any]]:
    found = []
    while content:
        length = int.from_bytes(content[1:5], "big")
        found.append(json.loads(content[5 : 5 + length]))
        content = content[5 + length :]
    return found


def until(condition: Callable[[], object], seconds: float = 5) -> None:
    """Wait for a condition; fail when it does not come true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"not true within {seconds} s")
        time.sleep(0.01)


def alive(marker: str) -> list[int]:
    """Return the processes of this machine whose command line holds a marker."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                line = Path("/proc", name, "cmdline").read_bytes()
                state = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if marker.encode() in line and state != "Z":
                found.append(int(name))
    return found


@functools.cache
def interpreter(uid: int | None) -> tuple[str, ...]:
    """Return a command that runs Python with the host's requirements as a user."""
    if uid is None:
        return (sys.executable,)
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip(f"{MISSING_HERE} root and setpriv, to become another user")
    drop = ("setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--inh-caps=-all")
    for python in (sys.executable, shutil.which("python3", path="/usr/bin:/usr/local/bin")):
        if python is None:
            continue
        check = [*drop, python, "-c", "import starlette, uvicorn, infra.local.host.server"]
        if subprocess.run(check, cwd=ROOT, env=_env(), capture_output=True, check=False).returncode:
            continue
        return (*drop, python)
    pytest.skip(f"{MISSING_HERE} a Python that an ordinary user may run with the requirements")


def _env() -> dict[str, str]:
    packages = sysconfig.get_path("purelib")
    return {"PATH": os.environ["PATH"], "PYTHONPATH": f"{ROOT}:{packages}", "HOME": "/nowhere"}
