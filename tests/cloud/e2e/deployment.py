"""The router deployed to the emulator, a provider host beside it, and what tests ask of both."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx

from infra.local import hosting, pools
from infra.local.state import State
from tests.cloud.e2e.emulator import Emulator
from tests.cloud.e2e.processes import Child
from tests.cloud.synthesis import ROOT, Assembly
from tests.local.acceptance.deployment import eventually

STAGE = "live"
HOST_SECONDS, CALL_SECONDS = 20.0, 60.0
SCOPES = ["sandboxes:read", "sandboxes:write"]
ADD_KEY = """
import json, sys
from functions.edge import wiring
from sandbox_router.model.secret import Secret
tenant, key, scopes = json.loads(sys.stdin.read())
print(wiring.router().add_key(tenant, Secret(key), scopes))
"""


class Cloud:
    """One deployment; `api` holds a key of it."""

    def __init__(self, root: Path, assembly: Assembly) -> None:
        self.emulator = Emulator(root / "aws")
        self.assembly = assembly
        self.host = httpx.Client(timeout=30, trust_env=False)
        self.api = httpx.Client(timeout=CALL_SECONDS, trust_env=False)
        self.provider: Child | None = None
        try:
            self.emulator.deploy(assembly)
            self._start_provider(root / "provider")
            self.api.base_url = httpx.URL(self.url)
            self.api.headers["Authorization"] = f"Bearer {self.add_key('default', SCOPES)}"
        except BaseException:
            self.close()
            raise

    def _start_provider(self, folder: Path) -> None:
        """The provider host of `make run`, and its pools as the deployment's."""
        state = State(folder)
        state.prepare()
        pools.prepare(state)
        command = [sys.executable, "-m", "infra.local.host", "--port", "0"]
        command += ["--state", str(state.host), "--config", str(state.host_config)]
        command += ["--announce", str(state.host_json)]
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{ROOT}/layers/core/python:{ROOT}"}
        self.provider = Child(command, env, ROOT, state.host_log)
        found = eventually(lambda: hosting.find(state), HOST_SECONDS)
        self.host.base_url = httpx.URL(found.url)
        self.emulator.client("secretsmanager").put_secret_value(
            SecretId=self.variables["POOLS_SECRET_ARN"],
            SecretString=pools.resolved(state, found).read_text(),
        )

    @cached_property
    def url(self) -> str:
        """The API's stage, by path: its host name resolves to AWS, not to the emulator."""
        (api,) = self.emulator.client("apigateway").get_rest_apis()["items"]
        return f"{self.emulator.url}/restapis/{api['id']}/{STAGE}/_user_request_"

    @cached_property
    def functions(self) -> dict[str, dict[str, Any]]:
        """What was deployed, by the name of the row."""
        paged = self.emulator.client("lambda").get_paginator("list_functions").paginate()
        found = [one for page in paged for one in page["Functions"]]
        return {one["Handler"].split(".")[2]: one for one in found}

    @cached_property
    def variables(self) -> dict[str, str]:
        """What a function that makes a Router is told."""
        found: dict[str, str] = self.functions["advance"]["Environment"]["Variables"]
        return found

    @property
    def table(self) -> str:
        """The table's name."""
        return self.variables["TABLE_NAME"]

    def add_key(self, tenant: str, scopes: list[str]) -> str:
        """A new API key, made as an operator would: with the deployment's own settings."""
        key = f"sbr_{secrets.token_urlsafe(32)}"
        env = self.emulator.environment | {"AWS_ENDPOINT_URL": self.emulator.url} | self.variables
        done = subprocess.run(
            [sys.executable, "-c", ADD_KEY],
            input=json.dumps([tenant, key, scopes]),
            env=env,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return key

    # What tests ask of the router.

    def create(self, key: str | None = None, **body: Any) -> httpx.Response:
        """POST /v1/sandboxes."""
        headers = {"Idempotency-Key": key} if key else {}
        body = {"ttl_seconds": 300, **body}
        return self.api.post("/v1/sandboxes", json=body, headers=headers)

    def get(self, sandbox_id: str) -> dict[str, Any]:
        """One sandbox."""
        answer = self.api.get(f"/v1/sandboxes/{sandbox_id}")
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def destroy(self, sandbox_id: str, seconds: float = 30) -> None:
        """DELETE until it is confirmed."""
        url = f"/v1/sandboxes/{sandbox_id}"
        eventually(lambda: self.api.delete(url).status_code == 204, seconds, every=0.3)

    def reaches(self, sandbox_id: str, state: str, seconds: float) -> dict[str, Any]:
        """The sandbox once it is in a state."""
        eventually(lambda: self.get(sandbox_id)["state"] == state, seconds, every=0.3)
        return self.get(sandbox_id)

    # What tests ask of the provider host.

    def instances(self, sandbox_id: str, *, alive: bool = True) -> list[dict[str, Any]]:
        """The instances of a sandbox at all providers."""
        found = self.host.get("/_host/instances").json()["instances"]
        return [
            one
            for one in found
            if one["metadata"]["constal-sandbox-id"] == sandbox_id
            and (one["gone_at"] is None or not alive)
        ]

    def calls(self, after: int, **match: str) -> list[dict[str, Any]]:
        """What was asked of the host since call number `after`."""
        found = self.host.get("/_host/calls", params={"after": str(after)}).json()["calls"]
        return [one for one in found if all(one.get(k) == v for k, v in match.items())]

    def last_call(self) -> int:
        """The number of the newest call."""
        return max((call["seq"] for call in self.calls(0)), default=0)

    @contextmanager
    def fault(self, fault: str, **order: Any) -> Iterator[None]:
        """Order a fault, and cancel it in the end."""
        ordered = self.host.post("/_host/faults", json={"fault": fault, **order})
        assert ordered.is_success, ordered.text
        try:
            yield
        finally:
            self.host.delete(f"/_host/faults/{ordered.json()['id']}")

    # What tests do to AWS.

    def workers(self, function: str) -> list[int]:
        """The processes that run a function now."""
        name = self.functions[function]["FunctionName"]
        children = self.emulator.process.children()
        return [pid for pid, environ in children.items() if f"={name}\0" in environ]

    def close(self) -> None:
        """End every process."""
        self.emulator.end()
        if self.provider is not None:
            self.provider.end()
        self.api.close()
        self.host.close()
