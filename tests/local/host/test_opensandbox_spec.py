"""The OpenSandbox dialect's answers validate against the vendor's published documents."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from jsonschema import Draft202012Validator

from tests.local.host.hosting import Host
from tests.local.host.opensandbox import CONFIG, Client, events_of

pytestmark = [pytest.mark.vendor_specs, pytest.mark.xdist_group("opensandbox-host")]


class Spec:
    """A published OpenAPI document that answers are held against."""

    def __init__(self, path: Path) -> None:
        self._document = yaml.safe_load(path.read_text(encoding="utf-8"))
        self.paths = frozenset(self._document["paths"])
        self.framework = "HTTPValidationError" in self._document["components"]["schemas"]

    def check(self, answer: httpx.Response, method: str, path: str) -> None:
        """Check a whole answer, by its status."""
        node = self._document["paths"][path][method]["responses"]
        status = str(answer.status_code)
        assert status in node, f"{method} {path} {status} is not documented: {answer.text}"
        response = node[status]
        if "$ref" in response:
            name = response["$ref"].rpartition("/")[2]
            response = self._document["components"]["responses"][name]
        schema = response.get("content", {}).get("application/json", {}).get("schema")
        if schema:  # FastAPI writes an empty one where there is no body
            self.holds(schema, answer.json())
        elif "application/json" in response.get("content", {"application/json": None}):
            assert not answer.content

    def holds(self, schema: dict[str, Any], instance: object) -> None:
        """Check one value."""
        whole = {"components": self._document["components"], "allOf": [schema]}
        errors = list(Draft202012Validator(_plain(whole)).iter_errors(instance))
        assert not errors, f"{errors[0].message} in {json.dumps(instance)}"

    def event(self, event: dict[str, Any]) -> None:
        """Check one event of a stream."""
        self.holds({"$ref": "#/components/schemas/ServerStreamEvent"}, event)


def _plain(node: Any) -> Any:
    """Return an OpenAPI schema as JSON Schema, which says `nullable` otherwise."""
    if isinstance(node, list):
        return [_plain(item) for item in node]
    if not isinstance(node, dict):
        return node
    plain = {name: _plain(item) for name, item in node.items()}
    if plain.pop("nullable", None) is True and isinstance(plain.get("type"), str):
        plain["type"] = [plain["type"], "null"]
    return plain


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    made = Host(config=CONFIG).started()
    yield made
    made.close()


@pytest.fixture
def gamma(host: Host) -> Iterator[Client]:
    client = Client(host)
    yield client
    client.http.close()
    host.http.delete("/_host/faults")


@pytest.fixture(
    params=["sandbox-lifecycle.yml", "lifecycle-openapi-from-server-1.1.1.json"],
    ids=["repository", "server-1.1.1"],
)
def lifecycle(vendor_specs: Path, request: pytest.FixtureRequest) -> Spec:
    """The document in the repository, and the one the server makes of itself."""
    return Spec(vendor_specs / "opensandbox" / request.param)


def one(spec: Spec, rest: str = "") -> str:
    """The path of one sandbox as this document writes it."""
    names = (f"/sandboxes/{{{name}}}{rest}" for name in ("sandboxId", "sandbox_id"))
    return next(name for name in names if name in spec.paths)


def test_the_lifecycle_answers_as_published(lifecycle: Spec, gamma: Client) -> None:
    created = gamma.create(metadata={"a": "b"}, env={"X": "1"})
    lifecycle.check(created, "post", "/sandboxes")
    lifecycle.check(gamma.create(timeout=None), "post", "/sandboxes")
    path = f"/sandboxes/{created.json()['id']}"
    lifecycle.check(gamma.http.get(path), "get", one(lifecycle))
    lifecycle.check(gamma.http.get("/sandboxes", params={"pageSize": 1}), "get", "/sandboxes")
    lifecycle.check(
        gamma.http.get(path + "/endpoints/44772"), "get", one(lifecycle, "/endpoints/{port}")
    )
    renewed = gamma.http.post(
        path + "/renew-expiration", json={"expiresAt": "2099-01-01T00:00:00Z"}
    )
    lifecycle.check(renewed, "post", one(lifecycle, "/renew-expiration"))
    patched = gamma.http.patch(path + "/metadata", json={"a": None, "c": "d"})
    lifecycle.check(patched, "patch", one(lifecycle, "/metadata"))
    for action in ("/pause", "/pause", "/resume", "/resume"):
        lifecycle.check(gamma.http.post(path + action), "post", one(lifecycle, action))
    for _ in range(2):
        lifecycle.check(gamma.http.delete(path), "delete", one(lifecycle))
    lifecycle.check(gamma.http.get(path), "get", one(lifecycle))


def test_errors_have_the_published_shape(lifecycle: Spec, gamma: Client, host: Host) -> None:
    for wrong in ({"metadata": {"a": "x" * 64}}, {"image": {"uri": "no/such"}}):
        lifecycle.check(gamma.create(**wrong), "post", "/sandboxes")
    if lifecycle.framework:
        lifecycle.check(gamma.create(timeout=1), "post", "/sandboxes")
        lifecycle.check(gamma.http.get("/sandboxes?page=0"), "get", "/sandboxes")
    wrong_key = httpx.get(
        f"{host.url}/opensandbox/v1/sandboxes", headers={"OPEN-SANDBOX-API-KEY": "x"}
    )
    lifecycle.check(wrong_key, "get", "/sandboxes")
    path = f"/sandboxes/{gamma.made()}/renew-expiration"
    past = gamma.http.post(path, json={"expiresAt": "2001-01-01T00:00:00Z"})
    lifecycle.check(past, "post", one(lifecycle, "/renew-expiration"))
    for fault in ("error_500", "unauthorized", "invalid"):
        host.order(fault=fault, op="create", times=1)
        lifecycle.check(gamma.create(), "post", "/sandboxes")


def test_execd_answers_as_published(vendor_specs: Path, gamma: Client) -> None:
    spec, box = Spec(vendor_specs / "opensandbox" / "execd-api.yaml"), gamma.made()
    spec.check(gamma.agent(box, "GET", "/ping"), "get", "/ping")
    spec.check(gamma.agent(box, "GET", "/metrics"), "get", "/metrics")
    for command in ("echo out; echo err >&2", "exit 3"):
        for event in gamma.run(box, command):
            spec.event(event)
    detached = gamma.agent(box, "POST", "/command", json={"command": "sleep 9", "background": True})
    init, complete = events_of(detached)
    spec.event(complete)
    status = f"/command/status/{init['text']}"
    spec.check(gamma.agent(box, "GET", status), "get", "/command/status/{id}")
    interrupt = f"/command?id={init['text']}"
    for _ in range(2):
        spec.check(gamma.agent(box, "DELETE", interrupt), "delete", "/command")
    spec.check(gamma.agent(box, "GET", status), "get", "/command/status/{id}")
    spec.check(gamma.agent(box, "GET", "/command/status/no"), "get", "/command/status/{id}")
    spec.check(gamma.agent(box, "GET", "/command/no/logs"), "get", "/command/{id}/logs")
    spec.check(gamma.agent(box, "POST", "/command", json={}), "post", "/command")


def test_files_answer_as_published(vendor_specs: Path, gamma: Client) -> None:
    spec, box = Spec(vendor_specs / "opensandbox" / "execd-api.yaml"), gamma.made()
    parts = {"metadata": ("metadata", b'{"path": "/tmp/d/f"}'), "file": ("f", b"x")}
    spec.check(gamma.agent(box, "POST", "/files/upload", files=parts), "post", "/files/upload")
    spec.check(gamma.agent(box, "POST", "/files/upload", content=b""), "post", "/files/upload")
    for path in ("/tmp/d/f", "/tmp/no"):
        for method, operation in (("GET", "/files/info"), ("DELETE", "/files")):
            answer = gamma.agent(box, method, operation, params={"path": path})
            spec.check(answer, method.lower(), operation)
        answer = gamma.agent(box, "GET", "/directories/list", params={"path": path})
        spec.check(answer, "get", "/directories/list")
    for operation in ("/directories/list", "/files/search", "/files/info", "/files/download"):
        answer = gamma.agent(box, "GET", operation, params={"path": "/tmp"})
        spec.check(answer, "get", operation)
    made = gamma.agent(box, "POST", "/directories", json={"/tmp/e": {"mode": 755}})
    spec.check(made, "post", "/directories")
    gone = gamma.agent(box, "DELETE", "/directories", params={"path": "/tmp/e"})
    spec.check(gone, "delete", "/directories")
