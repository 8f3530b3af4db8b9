"""Catalog, files and document are one; the document is current and tells the truth."""

from __future__ import annotations

import json
import re
from importlib import import_module
from typing import Any

import jsonschema
import pytest

from adapters import providers
from functions import catalog
from functions.edge.api import Operation
from infra import openapi
from sandbox_router.lifecycle.advance import BUDGET_MS
from sandbox_router.model.failure import tree
from tests.architecture.tree import ROOT
from tests.unit.functions.test_edge import given
from tests.unit.functions.world import Got, World, call, sample

DOCUMENT: dict[str, Any] = json.loads(openapi.FILE.read_text())
STANDING = {"content-type", "cache-control", "x-content-type-options"}


def described(row: catalog.Http) -> dict[str, Any]:
    found: dict[str, Any] = DOCUMENT["paths"][row.path][row.method.lower()]
    return found


def resolved(part: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in part:
        found: Any = DOCUMENT
        for name in part["$ref"].removeprefix("#/").split("/"):
            found = found[name]
        part = found
    return part


def conforms(row: catalog.Http, got: Got) -> None:
    """Status, content type and body are as the document says."""
    answer = resolved(described(row)["responses"][str(got.status)])
    kind = got.headers.get("content-type")
    assert (kind is not None) == ("content" in answer), got.status
    assert set(got.headers) - {name.lower() for name in answer["headers"]} <= STANDING
    if kind is None:
        return
    schema = answer["content"][kind]["schema"]
    if kind != "application/octet-stream":
        whole = {**schema, "components": DOCUMENT["components"]}
        jsonschema.validate(got.json, whole, jsonschema.Draft202012Validator)


def test_the_committed_document_is_current() -> None:
    assert openapi.FILE.read_text() == openapi.text(), "make openapi"


def test_whoever_advances_has_the_time_for_all_it_is_given_at_once() -> None:
    timeouts = [providers.profile(kind).timeouts for kind in providers.KINDS]
    longest = max(max(each.create, 2 * each.call) for each in timeouts)
    advancing = ("advance", "guard", "accept_event")
    for row in (row for row in catalog.WORKERS if row.name in advancing):
        assert row.timeout > getattr(row, "batch", 1) * (BUDGET_MS / 1000 + longest), row.name


def test_catalog_files_and_paths_are_the_same() -> None:
    files = {path.stem for path in (ROOT / "functions" / "api").glob("[!_]*.py")}
    assert files == {row.name for row in catalog.HTTP}
    files = {path.stem for path in (ROOT / "functions" / "workers").glob("[!_]*.py")}
    assert files == {row.name for row in catalog.WORKERS}
    published = {(p, m.upper()) for p, methods in DOCUMENT["paths"].items() for m in methods}
    assert published == {(row.path, row.method) for row in catalog.HTTP}


def test_every_row_has_its_handler() -> None:
    for row in catalog.HTTP:
        handler = import_module(row.module).handler
        assert isinstance(handler, Operation)
        assert handler.row is row
        assert handler.function.__doc__
        assert ("body" in handler.models) == (row.body_bytes > 0), row.name
    assert all(callable(import_module(row.module).handler) for row in catalog.WORKERS)


def test_operation_ids_are_one_each() -> None:
    ids = [row.operation_id for row in catalog.HTTP]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[a-z]+[A-Za-z]*", name) for name in ids)


def test_the_document_is_openapi() -> None:
    assert DOCUMENT["openapi"] == "3.1.0"
    for schema in DOCUMENT["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)
    codes = DOCUMENT["components"]["schemas"]["Problem"]["properties"]["code"]["enum"]
    assert set(codes) == {cls.code for cls in tree()}


def test_every_reference_leads_somewhere() -> None:
    for name in re.findall(r'"\$ref": "([^"]+)"', openapi.FILE.read_text()):
        assert resolved({"$ref": name})


@pytest.mark.parametrize("row", catalog.HTTP, ids=lambda row: row.name)
def test_answers_are_as_documented(world: World, row: catalog.Http) -> None:
    parts = given(row)
    conforms(row, call(row.name, **parts))  # not found, or the answer where there is no id
    if "id" in parts["path"]:
        parts["path"]["id"] = world.created(labels={"a": "b"})
        world.first.files["/a"] = b"x"
        from sandbox_router.ports import Exit

        world.first.events.append([Exit(0)])
    if "upload_id" in parts["path"]:
        parts["path"]["upload_id"] = world.uploaded(parts["path"]["id"])
    if "snapshot_id" in parts["path"]:
        parts["path"]["snapshot_id"] = world.captured(world.created())
    good = call(row.name, **parts)
    assert good.status < 300, good.text
    conforms(row, good)
    conforms(row, call(row.name, **{**parts, "query": {"nope": "1"}}))
    if row.scope is not None:
        conforms(row, call(row.name, **parts, tenant=None))
        conforms(row, call(row.name, **parts, scopes=""))
    if row.body_bytes:
        conforms(row, call(row.name, **{**parts, "body": "x" * (row.body_bytes + 1)}))
    if row.body_bytes and row.name != "write_file":
        conforms(row, call(row.name, **{**parts, "body": "{}"}))
        bad = call(row.name, **{**parts, "body": {"nope": 1}})
        assert bad.status == 400
        conforms(row, bad)


SAMPLES = sorted(path.stem for path in (ROOT / "events" / "api").glob("*.json"))


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_are_events_the_handlers_take(world: World, name: str) -> None:
    from tests.unit.functions.world import invoke

    assert SAMPLES
    got = invoke(name, sample(name))
    assert got.status in (200, 201, 404), got.text
