"""The E2B dialect's answers validate against the vendor's published OpenAPI."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from jsonschema import Draft202012Validator

from tests.local.host.hosting import E2B, Host

pytestmark = pytest.mark.vendor_specs


class Spec:
    """A published OpenAPI document that answers are held against."""

    def __init__(self, path: Path) -> None:
        self._document = yaml.safe_load(path.read_text(encoding="utf-8"))

    def check(self, answer: httpx.Response, method: str, path: str) -> None:
        pointer = f"/paths/{path.replace('/', '~1')}/{method}/responses/{answer.status_code}"
        node: Any = self._document["paths"][path][method]["responses"]
        assert str(answer.status_code) in node, f"{pointer} is not documented: {answer.text}"
        response = node[str(answer.status_code)]
        if "$ref" in response:
            response = self._document["components"]["responses"][
                response["$ref"].rpartition("/")[2]
            ]
        content = response.get("content", {})
        if not content:
            assert not answer.content
            return
        schema = content["application/json"]["schema"]
        whole = {"components": self._document["components"], "allOf": [schema]}
        errors = list(Draft202012Validator(_plain(whole)).iter_errors(answer.json()))
        assert not errors, f"{pointer}: {errors[0].message} in {answer.text}"


def _plain(node: Any) -> Any:
    """Return an OpenAPI 3.0 schema as JSON Schema, which says `nullable` otherwise."""
    if isinstance(node, list):
        return [_plain(item) for item in node]
    if not isinstance(node, dict):
        return node
    plain = {name: _plain(item) for name, item in node.items()}
    if plain.pop("nullable", None) is True and "type" in plain:
        plain["type"] = [plain["type"], "null"]
    return plain


@pytest.fixture
def control(vendor_specs: Path) -> Spec:
    return Spec(vendor_specs / "e2b" / "openapi.yml")


def test_the_control_plane_answers_as_published(control: Spec, alpha: E2B) -> None:
    created = alpha.http.post("/sandboxes", json={"templateID": "base", "secure": True})
    control.check(created, "post", "/sandboxes")
    # The newer create is not in the published document; it answers with the same Sandbox.
    newer = alpha.create(network={"allowPublicTraffic": False}, metadata={"a": "b"})
    control.check(newer, "post", "/sandboxes")
    path = f"/sandboxes/{newer.json()['sandboxID']}"
    control.check(alpha.http.get(path), "get", "/sandboxes/{sandboxID}")
    control.check(alpha.http.get("/v2/sandboxes"), "get", "/v2/sandboxes")
    control.check(alpha.http.get("/sandboxes"), "get", "/sandboxes")
    control.check(alpha.http.get(path + "/metrics"), "get", "/sandboxes/{sandboxID}/metrics")
    many = alpha.http.get("/sandboxes/metrics", params={"sandbox_ids": path.rpartition("/")[2]})
    control.check(many, "get", "/sandboxes/metrics")
    longer = alpha.http.post(path + "/timeout", json={"timeout": 90})
    control.check(longer, "post", "/sandboxes/{sandboxID}/timeout")
    refreshed = alpha.http.post(path + "/refreshes", json={"duration": 90})
    control.check(refreshed, "post", "/sandboxes/{sandboxID}/refreshes")
    for _ in range(2):
        control.check(alpha.http.post(path + "/pause"), "post", "/sandboxes/{sandboxID}/pause")
    control.check(alpha.http.get("/v2/sandboxes?state=paused"), "get", "/v2/sandboxes")
    for _ in range(2):
        joined = alpha.http.post(path + "/connect", json={"timeout": 90})
        control.check(joined, "post", "/sandboxes/{sandboxID}/connect")
    resumed = alpha.http.post(path + "/resume", json={})
    control.check(resumed, "post", "/sandboxes/{sandboxID}/resume")
    for _ in range(2):
        control.check(alpha.http.delete(path), "delete", "/sandboxes/{sandboxID}")


def test_errors_have_the_published_shape(control: Spec, alpha: E2B, host: Host) -> None:
    control.check(alpha.create(timeout=-1), "post", "/sandboxes")
    control.check(alpha.http.get("/v2/sandboxes?limit=0"), "get", "/v2/sandboxes")
    control.check(alpha.http.get("/sandboxes/none"), "get", "/sandboxes/{sandboxID}")
    for fault in ("capacity", "error_500", "made_503", "unauthorized", "invalid"):
        host.order(fault=fault, op="create", times=1)
        control.check(alpha.create(), "post", "/sandboxes")


def test_files_answer_as_published(vendor_specs: Path, alpha: E2B) -> None:
    spec = Spec(vendor_specs / "e2b" / "envd.yaml")
    sandbox = alpha.made()
    headers = alpha.into(sandbox)
    url = "/sandbox/files?path="
    written = alpha.http.post(url + "a", files={"file": ("a", b"x")}, headers=headers)
    spec.check(written, "post", "/files")
    for path in ("missing", "/home/user"):
        spec.check(alpha.http.get(url + path, headers=headers), "get", "/files")
    spec.check(alpha.http.get("/sandbox/health", headers=headers), "get", "/health")
    spec.check(alpha.http.get("/sandbox/envs", headers=headers), "get", "/envs")
