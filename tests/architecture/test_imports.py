"""Imports go down only: infra, tests -> functions -> adapters -> sandbox_router, inside it too."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.architecture.tree import Source, sample, sources, under

LAYERS = {
    "sandbox_router": set[str](),
    "adapters": {"sandbox_router"},
    "functions": {"sandbox_router", "adapters"},
    "infra": {"sandbox_router", "adapters", "functions"},
    "tests": {"sandbox_router", "adapters", "functions", "infra"},
}
USE_CASES = {"store", "routing", "model", "ports"}
CORE = {
    "model": set[str](),
    "table": set[str](),  # the storage language: keys, conditions, writes
    "ports": {"model", "table"},
    "store": {"model", "ports", "table"},
    "routing": {"model"},
    "lifecycle": USE_CASES,
    "reconcile": USE_CASES,
    "session": USE_CASES,
    "router": USE_CASES | {"lifecycle", "reconcile", "session"},
}
MAY_IMPORT_ADAPTERS = ("functions.edge.wiring", "infra.local", "adapters", "tests")
BACKENDS = {"aws", "embedded"}

Rule = Callable[[list[Source]], list[str]]


def layers_import_down(found: list[Source]) -> list[str]:
    def check() -> Iterator[str]:
        for source in found:
            top = source.module.partition(".")[0]
            for line, name in source.imports():
                target = name.partition(".")[0]
                if target in LAYERS and target != top and target not in LAYERS.get(top, set()):
                    yield f"{source.at(line)}: {top} imports {name}"

    return list(check())


def the_core_imports_down(found: list[Source]) -> list[str]:
    def check() -> Iterator[str]:
        for source in (s for s in found if s.within("sandbox_router")):
            part = _part(source.module)
            if part and part not in CORE:
                yield f"{source.at(1)}: {part} is no part of the core"
            for line, name in source.imports():
                if not under(name, "sandbox_router"):
                    continue
                target = _part(name)
                if target != part and target not in CORE.get(part, set()):
                    yield f"{source.at(line)}: {part or 'sandbox_router'} imports {name}"

    return list(check())


def _part(module: str) -> str:
    return module.partition(".")[2].partition(".")[0]


def the_core_is_standard_library_only(found: list[Source]) -> list[str]:
    allowed = {"sandbox_router", *sys.stdlib_module_names}
    return [
        f"{source.at(line)}: the core imports {name}"
        for source in found
        if source.within("sandbox_router")
        for line, name in source.imports()
        if name.partition(".")[0] not in allowed
    ]


def only_wiring_imports_adapters(found: list[Source]) -> list[str]:
    return [
        f"{source.at(line)}: {source.module} imports {name}"
        for source in found
        if not source.within(*MAY_IMPORT_ADAPTERS)
        for line, name in source.imports()
        if under(name, "adapters")
    ]


def adapters_do_not_know_each_other(found: list[Source]) -> list[str]:
    """No provider knows another or a backend, and no backend knows the other or a provider."""
    kinds = {f"adapters.providers.{kind}" for kind in _kinds(found)}
    islands = kinds | {f"adapters.{backend}" for backend in BACKENDS}
    shared = [s for s in found if s.within("adapters.providers") and not s.within(*kinds)]

    def check() -> Iterator[str]:
        for source in found:
            home = next((i for i in islands if source.within(i)), None)
            if home is None and source not in shared:
                continue
            for line, name in source.imports():
                if any(under(name, island) for island in islands if island != home):
                    yield f"{source.at(line)}: {source.module} imports {name}"

    return list(check())


def _kinds(found: list[Source]) -> set[str]:
    below = [s for s in found if s.within("adapters.providers") and s.module.count(".") >= 2]
    return {s.module.split(".")[2] for s in below if s.is_package or s.module.count(".") > 2}


def declarations_import_only_the_model(found: list[Source]) -> list[str]:
    return [
        f"{source.at(line)}: a declaration imports {name}"
        for source in found
        if source.within("adapters.providers") and source.path.name == "declare.py"
        for line, name in source.imports()
        if not under(name, "sandbox_router.model")
        and name.partition(".")[0] not in sys.stdlib_module_names
    ]


RULES: list[Rule] = [
    layers_import_down,
    the_core_imports_down,
    the_core_is_standard_library_only,
    only_wiring_imports_adapters,
    adapters_do_not_know_each_other,
    declarations_import_only_the_model,
]
HOME = "layers/core/python/sandbox_router"
E2B = "adapters/providers/e2b"
BREACHES = [
    (layers_import_down, f"{HOME}/router.py", "import adapters.embedded"),
    (layers_import_down, "adapters/aws/table.py", "from functions import catalog"),
    (layers_import_down, "functions/edge/wiring.py", "def late():\n    from infra import props"),
    (layers_import_down, "infra/cli/main.py", "import tests.fakes"),
    (the_core_imports_down, f"{HOME}/model/size.py", "from sandbox_router.ports import Clock"),
    (the_core_imports_down, f"{HOME}/model/size.py", "from .. import routing"),
    (the_core_imports_down, f"{HOME}/routing/order.py", "from sandbox_router import lifecycle"),
    (the_core_imports_down, f"{HOME}/lifecycle/advance.py", "from ..table import Put"),
    (the_core_imports_down, f"{HOME}/lifecycle/__init__.py", "from ..reconcile import compare"),
    (the_core_imports_down, f"{HOME}/session/files.py", "import sandbox_router.lifecycle.advance"),
    (the_core_imports_down, f"{HOME}/__init__.py", "from sandbox_router.router import Router"),
    (the_core_imports_down, f"{HOME}/billing/bill.py", ""),
    (the_core_is_standard_library_only, f"{HOME}/model/spec.py", "import pydantic"),
    (the_core_is_standard_library_only, f"{HOME}/store.py", "from boto3.dynamodb import types"),
    (only_wiring_imports_adapters, "functions/api/get_sandbox.py", "from adapters import embedded"),
    (only_wiring_imports_adapters, "infra/cli/main.py", "import adapters.providers"),
    (adapters_do_not_know_each_other, f"{E2B}/wire.py", "from adapters.providers import novita"),
    (adapters_do_not_know_each_other, f"{E2B}/wire.py", "from ..novita.wire import Box"),
    (adapters_do_not_know_each_other, f"{E2B}/provider.py", "from adapters.aws import objects"),
    (adapters_do_not_know_each_other, f"{E2B}/provider.py", "import adapters.embedded.table"),
    (adapters_do_not_know_each_other, "adapters/providers/http.py", "from . import novita"),
    (adapters_do_not_know_each_other, "adapters/aws/queue.py", "import adapters.embedded.queue"),
    (declarations_import_only_the_model, f"{E2B}/declare.py", "import httpx"),
    (declarations_import_only_the_model, f"{E2B}/declare.py", "from . import wire"),
]
ALLOWED = {
    f"{HOME}/router.py": "from .lifecycle import advance\nimport sandbox_router.store",
    f"{HOME}/lifecycle/create.py": "import re\nfrom ..model.size import Size\nfrom . import steps",
    f"{HOME}/store.py": "from sandbox_router import table\nfrom sandbox_router.ports import Table",
    f"{E2B}/declare.py": "import json\nfrom sandbox_router.model.capability import Profile",
    f"{E2B}/provider.py": "import httpx\nfrom ..http import Client\nfrom . import wire",
    "functions/edge/wiring.py": "from adapters.embedded.table import Sqlite",
    "functions/api/get_sandbox.py": "from sandbox_router.model import sandbox",
    "infra/local/host/__main__.py": "import adapters.providers.e2b",
}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_tree_keeps_the_rule(rule: Rule) -> None:
    assert rule(sources()) == []


@pytest.mark.parametrize(("rule", "path", "code"), BREACHES)
def test_a_breach_is_found(tmp_path: Path, rule: Rule, path: str, code: str) -> None:
    novita = {"adapters/providers/novita/__init__.py": ""}
    assert len(rule(sample(tmp_path, novita | {path: code}))) == 1


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_what_the_design_allows_is_no_breach(tmp_path: Path, rule: Rule) -> None:
    assert rule(sample(tmp_path, ALLOWED)) == []
