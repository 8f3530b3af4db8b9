"""OpenSandbox's wire API as plainly as a client can speak it, and a host that speaks it."""

from __future__ import annotations

import json
from typing import Any

import httpx

from tests.local.host.hosting import Host

KEYS = {"gamma": "opensandbox_gamma-key", "delta": "opensandbox_delta-key"}
CONFIG: dict[str, Any] = {
    "accounts": [
        {"name": "gamma", "dialect": "opensandbox", "key": KEYS["gamma"]},
        {"name": "delta", "dialect": "opensandbox", "key": KEYS["delta"], "max_instances": 1},
    ]
}
IDLE = ["tail", "-f", "/dev/null"]
BODY: dict[str, Any] = {
    "image": {"uri": "python:3.12"},
    "entrypoint": IDLE,
    "timeout": 60,
    "resourceLimits": {"cpu": "500m", "memory": "512Mi"},
}


class Client:
    """One account's client."""

    def __init__(self, host: Host, account: str = "gamma") -> None:
        self.host = host
        headers = {"OPEN-SANDBOX-API-KEY": KEYS[account]}
        self.http = httpx.Client(
            base_url=f"{host.url}/opensandbox/v1", headers=headers, timeout=30, trust_env=False
        )

    def create(self, **body: Any) -> httpx.Response:
        return self.http.post("/sandboxes", json={**BODY, **body})

    def made(self, **body: Any) -> str:
        answer = self.create(**body)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["id"])

    def listed(self, **params: Any) -> list[str]:
        answer = self.http.get("/sandboxes", params=params)
        assert answer.status_code == 200, answer.text
        return [one["id"] for one in answer.json()["items"]]

    def agent(self, sandbox: str, method: str, path: str, **options: Any) -> httpx.Response:
        """A call to execd, without the key: the proxy path wants none."""
        url = f"{self.http.base_url}sandboxes/{sandbox}/proxy/44772{path}"
        return httpx.request(method, url, timeout=30, trust_env=False, **options)

    def run(self, sandbox: str, command: str, **body: Any) -> list[dict[str, Any]]:
        """Run a command in the foreground and return its events."""
        answer = self.agent(sandbox, "POST", "/command", json={"command": command, **body})
        assert answer.status_code == 200, answer.text
        return events_of(answer)


def events_of(answer: httpx.Response) -> list[dict[str, Any]]:
    return [json.loads(frame) for frame in answer.text.split("\n\n") if frame]


def told(events: list[dict[str, Any]], stream: str = "stdout") -> list[str]:
    return [event["text"] for event in events if event["type"] == stream]
