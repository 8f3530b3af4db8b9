"""The same story against the deployed stacks and against `make run`: the same answers."""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest

from tests.cloud.e2e.deployment import Cloud
from tests.local.acceptance.deployment import Deployment, eventually

OWN = re.compile(r"sbx-[a-z2-7]{26}|exec-[a-z2-7]{26}|\d{4}-\d\d-\d\dT[0-9:.]+Z")
VARIES = {"request_id", "instance_id", "duration_ms", "as_of", "estimated", "next_cursor"}
SHOWN = (
    "content-type",
    "location",
    "retry-after",
    "cache-control",
    "idempotent-replayed",
    "preference-applied",
    "www-authenticate",
    "x-content-type-options",
)
Told = tuple[str, int, dict[str, str], Any]


@pytest.fixture(scope="module")
def cloud(enforced: Cloud) -> Cloud:
    return enforced


def alike(value: Any) -> Any:
    """A value without what differs between any two calls."""
    if isinstance(value, dict):
        return {name: "…" if name in VARIES else alike(each) for name, each in value.items()}
    if isinstance(value, list):
        return [alike(each) for each in value]
    return OWN.sub("…", value) if isinstance(value, str) else value


class Teller:
    """Calls, and remembers the answers."""

    def __init__(self, api: httpx.Client) -> None:
        self.api = api
        self.told: list[Told] = []

    def __call__(self, method: str, path: str, **more: Any) -> httpx.Response:
        answer = self.api.request(method, path, **more)
        headers = {name: alike(answer.headers[name]) for name in SHOWN if name in answer.headers}
        if "location" in headers:
            headers["location"] = headers["location"].removeprefix("/live")  # the stage
        if not answer.content:
            headers.pop("content-type", None)  # API Gateway gives even no body a type
        text = answer.content and "json" in headers["content-type"]
        body = alike(answer.json()) if text else answer.content
        self.told.append((f"{method} {alike(path)}", answer.status_code, headers, body))
        return answer


def story(api: httpx.Client) -> list[Told]:
    """Create, use, destroy; and everything a client does wrong on the way."""
    call = Teller(api)
    call("GET", "/v1/health")
    for name in ("providers", "sizes", "regions", "images"):
        call("GET", f"/v1/{name}")
    call("GET", "/v1/providers/none")
    call("POST", "/v1/route", json={"size": "2x4:cheap"})
    body, key = {"size": "2x4", "ttl_seconds": 300, "labels": {"a": "b"}}, {"Idempotency-Key": "k"}
    made = call("POST", "/v1/sandboxes", json=body, headers=key).json()["id"]
    call("POST", "/v1/sandboxes", json=body, headers=key)
    call("POST", "/v1/sandboxes", json={**body, "ttl_seconds": 301}, headers=key)
    call("POST", "/v1/sandboxes", json={"ttl_seconds": 1, "sizes": "2x4"})
    call("POST", "/v1/sandboxes", content=b"{", headers={"Content-Type": "application/json"})
    call("POST", "/v1/sandboxes", content=b"<a/>", headers={"Content-Type": "text/xml"})
    box = f"/v1/sandboxes/{made}"
    call("GET", box)
    call("GET", "/v1/sandboxes", params={"label": "a=b"})
    call("GET", "/v1/sandboxes", params={"limit": "0"})
    call("POST", f"{box}/exec", json={"command": "echo out; echo err >&2; exit 3"})
    call("POST", f"{box}/exec", json={"argv": ["printf", "%s", "a b"], "timeout_seconds": 26})
    call("POST", f"{box}/exec", json={"command": "true"}, headers={"Accept": "text/event-stream"})
    file = {"path": "/tmp/a b/ü.bin"}
    octets = {"Content-Type": "application/octet-stream"}  # without, the emulator reads text
    call("PUT", f"{box}/files", params=file, content=bytes(range(256)), headers=octets)
    call("GET", f"{box}/files", params=file)
    call("DELETE", f"{box}/files", params=file)
    call("GET", f"{box}/files", params=file)
    call("PATCH", box, json={"labels": {"c": "d"}})
    call("POST", f"{box}/pause")
    call("POST", f"{box}/exec", json={"command": "true"})
    call("POST", f"{box}/resume")
    eventually(lambda: api.delete(box).status_code == 204, 30, every=0.2)
    call("DELETE", box)
    call("GET", box)
    call("POST", f"{box}/exec", json={"command": "true"})
    call("GET", "/v1/sandboxes/sbx-none")
    call("GET", "/v1/nothing")
    call("GET", "/v1/sandboxes", headers={"Authorization": "Bearer wrong"})
    return call.told


def test_the_emulated_cloud_answers_as_one_machine_does(cloud: Cloud, local: Deployment) -> None:
    cloud.rested()
    here, there = story(local.api), story(cloud.api)
    assert [told[:2] for told in there] == [told[:2] for told in here]
    for one, other in zip(there, here, strict=True):
        assert one == other
