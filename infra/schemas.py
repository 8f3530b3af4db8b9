"""JSON Schemas of the bus contract, made from `functions.edge.events`: `python -m infra.schemas`.

`--write` renews `events/schema`, without it the names of what is out of date are printed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path

from pydantic import TypeAdapter

from functions.edge.events import IN, OUT
from infra.openapi import tidy

FOLDER = Path(__file__).parents[1] / "events" / "schema"
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def texts() -> Mapping[str, str]:
    """File name -> the schema of an event's `detail`, by detail type."""
    found = {}
    for kind, model in (IN | OUT).items():
        schema = tidy(TypeAdapter(model).json_schema())
        document = {"$schema": DIALECT, "title": kind, **schema}
        found[f"{kind}.json"] = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    return found


def stale(folder: Path = FOLDER) -> list[str]:
    """Files that are missing, wrong, or nobody's."""
    made = texts()
    there = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*")}
    return sorted(name for name in {*made, *there} if made.get(name) != there.get(name))


def main() -> int:
    """Write or check."""
    parser = argparse.ArgumentParser(prog="python -m infra.schemas", description=__doc__)
    parser.add_argument("--write", action="store_true")
    if parser.parse_args().write:
        FOLDER.mkdir(exist_ok=True)
        for name, text in texts().items():
            (FOLDER / name).write_text(text, encoding="utf-8")
    for name in stale():
        print(f"events/schema/{name}: python -m infra.schemas --write", file=sys.stderr)
    return 1 if stale() else 0


if __name__ == "__main__":
    sys.exit(main())
