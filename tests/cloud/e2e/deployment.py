"""The router deployed to the emulator, a provider host beside it, and what tests ask of both."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx

from infra.cloud.console.keys import SCOPES
from infra.local import hosting, pools
from infra.local.state import State
from tests.cloud.e2e.emulator import Emulator
from tests.cloud.e2e.processes import Child
from tests.cloud.synthesis import ROOT, Assembly
from tests.local.acceptance.deployment import eventually

STAGE = "live"
EVENT_SOURCES = {"acme.orders": {"tenant": "acme", "scopes": ["sandboxes:write"]}}
HOST_SECONDS, CALL_SECONDS = 20.0, 60.0


class Cloud:
    """One deployment; `api` holds a key of it."""

    def __init__(self, root: Path, assembly: Assembly, *, enforced: bool = False) -> None:
        self.emulator = Emulator(root / "aws", enforced=enforced)
        self.assembly = assembly
        self.state = State(root / "provider")
        self.host = httpx.Client(timeout=30, trust_env=False)
        self.api = httpx.Client(timeout=CALL_SECONDS, trust_env=False)
        self.provider: Child | None = None
        try:
            self.emulator.deploy(assembly)
            self._start_provider()
            self.api.base_url = httpx.URL(self.url)
            self.api.headers["Authorization"] = f"Bearer {self.add_key('default')}"
        except BaseException:
            self.close()
            raise

    def _start_provider(self) -> None:
        """The provider host of `make run`, and its pools as the deployment's."""
        state = self.state
        state.prepare()
        pools.prepare(state)
        command = [sys.executable, "-m", "infra.local.host", "--port", "0"]
        command += ["--state", str(state.host), "--config", str(state.host_config)]
        command += ["--announce", str(state.host_json)]
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{ROOT}/layers/core/python:{ROOT}"}
        self.provider = Child(command, env, ROOT, state.host_log)
        found = eventually(lambda: hosting.find(state), HOST_SECONDS)
        self.host.base_url = httpx.URL(found.url)
        file = pools.resolved(state, found)
        document = {**json.loads(file.read_text()), "event_sources": EVENT_SOURCES}
        file.write_text(json.dumps(document))
        self.operator("pools", FILE=str(file))

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

    def add_key(self, tenant: str, scopes: Sequence[str] = SCOPES) -> str:
        """A new API key, as `make key` makes it."""
        return self.operator("key", TENANT=tenant, SCOPES=" ".join(scopes)).strip()

    def operator(self, command: str, **env: str) -> str:
        """What an operator's command prints."""
        where = {"AWS_ENDPOINT_URL": self.emulator.url, "OUTPUTS": str(self.emulator.outputs)}
        done = subprocess.run(
            [sys.executable, "-m", "infra.cloud.console", command],
            env=self.emulator.environment | where | env,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

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

    def rested(self) -> None:
        """Wait until every pool is asked in its turn: after a refusal it cools down for a while."""
        table, ends = self.emulator.client("dynamodb"), [0.0]
        for pool in pools.ACCOUNTS:
            key = {"pk": {"S": f"POOL#{pool}"}, "sk": {"S": "HEALTH"}}
            item = table.get_item(TableName=self.table, Key=key, ConsistentRead=True).get(
                "Item", {}
            )
            ends += [int(item["cooling_until"]["N"]) / 1000] if "cooling_until" in item else []
        time.sleep(max(0.0, max(ends) - time.time()))

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

    def refused(self) -> list[str]:
        """What functions wrote down of what AWS refused them."""
        logs, found = self.emulator.client("logs"), list[str]()
        for group in logs.describe_log_groups()["logGroups"]:
            name = group["logGroupName"]
            events = logs.filter_log_events(logGroupName=name)["events"]
            found += [f"{name}: {e['message']}" for e in events if "AccessDenied" in e["message"]]
        return found

    def close(self) -> None:
        """End every process."""
        self.emulator.end()
        if self.provider is not None:
            self.provider.end()
        self.api.close()
        self.host.close()
