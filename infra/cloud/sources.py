"""The code of one function: its module, the edge, and nothing of the other functions."""

from __future__ import annotations

import shutil
from pathlib import Path

from functions.catalog import Http, Worker
from infra.cloud.layers import BUILD, ROOT, Built, build, copy, files
from infra.cloud.target import Target

Row = Http | Worker
MOUNTED = "/var/task"


def function(row: Row, target: Target, store: Path = BUILD) -> Built:
    """The folder of a function, as it is mounted at /var/task."""
    edge = _edge(target, store)
    own = [ROOT / place for place in places(row)]

    def fill(at: Path) -> list[Path]:
        shutil.copytree(edge.path, at, dirs_exist_ok=True)  # compiled once for all functions
        for file in own:
            to = at / file.relative_to(ROOT)
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_bytes(file.read_bytes())
        return [at / file.relative_to(ROOT) for file in own if file.suffix == ".py"]

    return build(row.name, target, fill, [*own, *_edge_files()], MOUNTED, store)


def _edge(target: Target, store: Path) -> Built:
    def fill(at: Path) -> list[Path]:
        copy(ROOT / "functions/edge", at / "functions/edge")
        return [at]

    return build("edge", target, fill, _edge_files(), MOUNTED, store)


def _edge_files() -> list[Path]:
    return [f for f in files(ROOT / "functions/edge") if "__pycache__" not in f.parts]


def places(row: Row) -> list[str]:
    """Its own files, relative to the root."""
    module = row.module.replace(".", "/")
    package = module.rpartition("/")[0]
    shared = ["functions/__init__.py", "functions/catalog.py", f"{package}/__init__.py"]
    return [*shared, f"{module}.py", *row.files]


def handler(row: Row) -> str:
    """Its name for Lambda."""
    return f"{row.module}.handler"
