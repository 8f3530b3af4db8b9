"""Every module imports with an empty environment and touches nothing while it does."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.tree import ROOT, Source, sample, sources, under

CDK = ("aws_cdk", "constructs")
"""Starts Node when it is imported, and is not in this environment; its stacks are synthesised in
their own (`tests/cloud`).
"""
PROBE = Path(__file__).with_name("probe.py")
PACKAGES = ("sandbox_router", "adapters", "functions", "infra")


def complaints(root: Path, modules: list[str]) -> list[str]:
    command = [sys.executable, "-B", str(PROBE), str(root), *modules]
    done = subprocess.run(command, cwd=root, env={}, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    result: list[str] = json.loads(done.stdout)
    return result


def needing(found: list[Source], packages: tuple[str, ...]) -> set[str]:
    """The modules that import one of the packages, or a module that does."""
    needy: set[str] = set()
    while True:
        names = (*packages, *needy)
        more = {s.module for s in found for _, name in s.imports() for n in names if under(name, n)}
        if more <= needy:
            return needy
        needy |= more


@pytest.mark.parametrize("package", PACKAGES)
def test_every_module_imports_clean(package: str) -> None:
    elsewhere = needing(sources(), CDK)
    assert {name for name in elsewhere if not under(name, "infra.cloud")} == set()
    modules = [s.module for s in sources() if s.within(package) and s.module not in elsewhere]
    assert modules
    assert complaints(ROOT, modules) == []


@pytest.mark.parametrize(
    ("code", "complaint"),
    [
        ("import os\nos.environ['A']", "KeyError"),
        ("import os\nos.environ.get('A')", "functions/a.py reads A at import"),
        ("import os\nos.getenv('A')", "functions/a.py reads A at import"),
        ("from os import environ\ndict(environ)", "functions/a.py reads all variables"),
        ("import socket\nsocket.create_connection(('127.0.0.1', 9))", "socket.connect"),
        ("import sqlite3\nsqlite3.connect(':memory:')", "sqlite3.connect"),
        ("import subprocess\nsubprocess.run(['true'])", "subprocess.Popen"),
        ("1 / 0", "functions.a: ZeroDivisionError"),
    ],
)
def test_a_dirty_import_is_found(tmp_path: Path, code: str, complaint: str) -> None:
    sample(tmp_path, {"functions/__init__.py": "", "functions/a.py": code})
    assert complaint in "\n".join(complaints(tmp_path, ["functions.a"]))


def test_a_lazy_read_is_clean(tmp_path: Path) -> None:
    sample(
        tmp_path,
        {
            "functions/__init__.py": "",
            "functions/a.py": "import os\ndef f(): return os.environ['A']",
        },
    )
    assert complaints(tmp_path, ["functions.a"]) == []


def test_who_reads_no_body_does_not_wait_for_what_checks_bodies() -> None:
    """The authorizer stands before every call, so its cold start is everybody's."""
    assert "functions.workers.authorize" not in needing(sources(), ("pydantic",))
