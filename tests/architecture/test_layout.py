"""Folders are the design's, and none is there for later."""

from __future__ import annotations

import ast
import importlib
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from tests.architecture.tree import ROOT, shipped

TOP = {
    *("pyproject.toml", "README.md", "Makefile"),
    *("functions", "infra", "layers", "adapters", "tests", "events"),
}
CORE = "layers/core/python/sandbox_router"
FOLDERS = {
    "layers": {"core", "deps", "stream"},
    "layers/core": {"python"},
    "layers/core/python": {"sandbox_router"},
    CORE: {"model", "ports", "routing", "lifecycle", "reconcile", "session", "store"},
    "adapters": {"providers", "conformance", "aws", "embedded"},
    "functions": {"edge", "api", "workers"},
    "infra": {"cloud", "local", "cli", "decisions"},
    "tests": {
        *("unit", "sim", "contract", "integration", "local", "cloud"),
        *("security", "architecture", "bench", "fakes"),
    },
}
PROVIDER = {"__init__.py", "profile.json", "declare.py", "wire.py", "provider.py"}
EMBEDDED_LINES = 500

Rule = Callable[[Path, list[Path]], list[str]]


def the_top_level_is_the_designs(root: Path, files: list[Path]) -> list[str]:
    return [n for n in {f.parts[0] for f in files} if not n.startswith(".") and n not in TOP]


def folders_are_the_designs(root: Path, files: list[Path]) -> list[str]:
    below = {(parent.parent.as_posix(), parent.name) for f in files for parent in f.parents}
    return [f"{p}/{name}" for p, name in sorted(below) if p in FOLDERS and name not in FOLDERS[p]]


def no_folder_is_a_stub(root: Path, files: list[Path]) -> list[str]:
    """A folder holds something besides a package marker, itself or below."""
    holds: defaultdict[Path, bool] = defaultdict(bool)
    for file in files:
        for parent in file.parents:
            holds[parent] |= not _is_marker(root / file)
    return sorted(str(folder) for folder, anything in holds.items() if not anything)


def _is_marker(file: Path) -> bool:
    if file.name != "__init__.py":
        return False
    body = ast.parse(file.read_text()).body
    return not body or (len(body) == 1 and isinstance(body[0], ast.Expr))


def a_provider_is_complete(root: Path, files: list[Path]) -> list[str]:
    held: defaultdict[str, set[str]] = defaultdict(set)
    for file in files:
        if file.is_relative_to("adapters/providers") and len(file.parts) > 3:
            held[file.parts[2]].add(file.parts[3])
    return [
        f"{kind} lacks {', '.join(sorted(PROVIDER - has))}"
        for kind, has in sorted(held.items())
        if PROVIDER - has
    ]


def the_one_machine_backend_is_small(root: Path, files: list[Path]) -> list[str]:
    mine = [f for f in files if f.is_relative_to("adapters/embedded") and f.suffix == ".py"]
    lines = sum((root / file).read_text().count("\n") for file in mine)
    return [f"{lines} lines, at most {EMBEDDED_LINES}"] if lines > EMBEDDED_LINES else []


RULES: list[Rule] = [
    the_top_level_is_the_designs,
    folders_are_the_designs,
    no_folder_is_a_stub,
    a_provider_is_complete,
    the_one_machine_backend_is_small,
]
E2B = [f"adapters/providers/e2b/{name}" for name in sorted(PROVIDER)]
BREACHES: list[tuple[Rule, list[str]]] = [
    (the_top_level_is_the_designs, ["src/a.py"]),
    (the_top_level_is_the_designs, ["setup.py"]),
    (folders_are_the_designs, ["functions/lib/a.py"]),
    (folders_are_the_designs, [f"{CORE}/billing/deep/a.py"]),
    (folders_are_the_designs, ["layers/extra/requirements.txt"]),
    (no_folder_is_a_stub, [f"{CORE}/session/__init__.py", f"{CORE}/store.py"]),
    (a_provider_is_complete, E2B[1:]),
    (the_one_machine_backend_is_small, ["adapters/embedded/a.py", "adapters/embedded/b.py"]),
]
ALLOWED = [*E2B, ".ci/run", "README.md", f"{CORE}/store.py", "adapters/embedded/a.py"]


def _made(root: Path, names: Iterable[str]) -> list[Path]:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("" if path.name == "__init__.py" else "x = 1\n" * (EMBEDDED_LINES // 2 + 1))
    return [Path(name) for name in names]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_tree_keeps_the_rule(rule: Rule) -> None:
    assert rule(ROOT, shipped()) == []


@pytest.mark.parametrize(("rule", "names"), BREACHES)
def test_a_breach_is_found(tmp_path: Path, rule: Rule, names: list[str]) -> None:
    assert len(rule(tmp_path, _made(tmp_path, names))) == 1


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_what_the_design_allows_is_no_breach(tmp_path: Path, rule: Rule) -> None:
    assert rule(tmp_path, _made(tmp_path, ALLOWED)) == []


def test_everything_the_design_names_at_the_top_is_there() -> None:
    assert {file.parts[0] for file in shipped()} >= TOP | {".ci"}


def test_the_table_of_kinds_is_the_list_of_provider_folders() -> None:
    kinds = importlib.import_module("adapters.providers").KINDS
    folders = {f.parts[2] for f in shipped() if f.match("adapters/providers/*/*")}
    assert {kind.replace("-", "_") for kind in kinds} == folders
