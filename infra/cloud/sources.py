"""The code of one function: its module, the edge, and nothing of the other functions."""

from __future__ import annotations

from pathlib import Path

from functions.catalog import Http, Worker
from infra.cloud.layers import BUILD, ROOT, Built, build, copy, files
from infra.cloud.target import Target

Row = Http | Worker


def function(row: Row, target: Target, store: Path = BUILD) -> Built:
    """The folder of a function, as it is mounted at /var/task."""
    own = [ROOT / place for place in places(row)]

    def fill(at: Path) -> None:
        copy(ROOT / "functions/edge", at / "functions/edge")
        for file in own:
            to = at / file.relative_to(ROOT)
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_bytes(file.read_bytes())

    edge = [f for f in files(ROOT / "functions/edge") if "__pycache__" not in f.parts]
    return build(row.name, target, fill, [*own, *edge], "/var/task", store)


def places(row: Row) -> list[str]:
    """Its own files, relative to the root."""
    module = row.module.replace(".", "/")
    package = module.rpartition("/")[0]
    shared = ["functions/__init__.py", "functions/catalog.py", f"{package}/__init__.py"]
    return [*shared, f"{module}.py", *row.files]


def handler(row: Row) -> str:
    """Its name for Lambda."""
    return f"{row.module}.handler"
