"""Compiled files beside the sources: Lambda cannot write them itself, and an import without them
takes about three times as long.

They must come from an interpreter of the target's minor version, and they are `unchecked-hash`:
valid whatever the times of the files say after zipping.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

PROBE = "import sys; print('%d.%d' % sys.version_info[:2], sys.implementation.name)"
SECONDS = 20.0
OVERRIDE = "TARGET_PYTHON"


@cache
def interpreter(python: str) -> str | None:
    """The command of a CPython of this minor version, or None when this machine has none."""
    return next((path for path in _candidates(python, os.environ) if _is(path, python)), None)


def _candidates(python: str, env: Mapping[str, str]) -> Iterator[str]:
    """Whoever may be it: the one named, this one, then every one on PATH."""
    if named := env.get(OVERRIDE):
        yield named
    yield sys.executable
    for folder in env.get("PATH", "").split(os.pathsep):
        if found := shutil.which(f"python{python}", path=folder or "."):
            yield found


def _is(path: str, python: str) -> bool:
    """It is what it says: a version manager's stand-in is on PATH, and may run nothing."""
    try:
        said = subprocess.run(
            [path, "-I", "-c", PROBE], capture_output=True, text=True, timeout=SECONDS
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return said.returncode == 0 and said.stdout.split() == [python, "cpython"]


def compile_tree(command: str, root: Path, mounted: str, parts: Iterable[Path]) -> None:
    """Compile these files and folders of a tree; tracebacks will name files as they are mounted."""
    subprocess.run(
        [
            *(command, "-I", "-m", "compileall", "-q", "-j", "0"),
            *("--invalidation-mode", "unchecked-hash"),
            *("-s", str(root), "-p", mounted, *map(str, parts)),
        ],
        check=True,
        stdout=subprocess.DEVNULL,
    )
