"""The catalog is the list: of the functions' files, and of the published routes."""

from __future__ import annotations

import importlib
import json
from typing import Any

import pytest

from tests.architecture.tree import ROOT, sources

HTTP_METHODS = {"get", "put", "post", "delete", "patch"}


@pytest.fixture
def rows() -> tuple[Any, ...]:
    found: tuple[Any, ...] = importlib.import_module("functions.catalog").FUNCTIONS
    return found


def test_every_function_is_a_file_and_every_file_a_function(rows: tuple[Any, ...]) -> None:
    folders = ("functions.api", "functions.workers")
    files = {s.module for s in sources() if s.within(*folders) and not s.is_package}
    assert {row.module for row in rows} == files


def test_a_function_has_the_name_of_its_file_and_a_handler(rows: tuple[Any, ...]) -> None:
    assert [r.name for r in rows] == [r.module.rpartition(".")[2] for r in rows]
    assert [r.name for r in rows if not callable(_handler(r.module))] == []


def test_the_published_routes_are_the_catalogs(rows: tuple[Any, ...]) -> None:
    paths = json.loads((ROOT / "infra/openapi.json").read_text())["paths"]
    published = {(m, p) for p, methods in paths.items() for m in methods if m in HTTP_METHODS}
    assert {(r.method.lower(), r.path) for r in rows if hasattr(r, "path")} == published


def _handler(module: str) -> Any:
    return getattr(importlib.import_module(module), "handler", None)
