"""What a failure says: which life it was, at which commit, and the last that clients saw."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.sim.world import World

LAST = 12


@contextmanager
def telling(what: object) -> Iterator[None]:
    """Whatever goes wrong in here says of what it was: enough to run it again."""
    try:
        yield
    except Exception as failed:
        world = World.latest
        seen = [] if world is None else [*map(str, world.history[-LAST:]), *world.points[-LAST:]]
        lines = [f"{what} at commit {_commit()}: {failed!r}", *seen]
        raise AssertionError("\n".join(lines)) from failed


def _commit() -> str:
    git = ["git", "rev-parse", "--short", "HEAD"]
    here = Path(__file__).parent
    told = subprocess.run(git, cwd=here, capture_output=True, text=True, check=False)
    return told.stdout.strip() or "unknown"
