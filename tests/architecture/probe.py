"""Run in a process of its own: import modules and print what their own code did on the way.

Usage: probe.py ROOT MODULE...   Prints a JSON list of complaints. Third-party code may read the
environment at import; ours may not. Nobody may touch the network, a database or a process.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Iterator, MutableMapping
from types import FrameType

WORLD = ("socket.", "subprocess.", "os.system", "os.posix_spawn", "os.fork", "sqlite3.", "urllib.")
ROOT, MODULES = sys.argv[1], sys.argv[2:]
OURS = tuple(f"{ROOT}/{top}/" for top in ("layers", "adapters", "functions", "infra"))
complaints: list[str] = []


def _reader(frame: FrameType | None) -> str:
    """The file that asked, past this one and the standard library's frames in between."""
    passed = (__file__, os.__file__, "<frozen os>", "<frozen _collections_abc>")
    while frame and frame.f_code.co_filename in passed:
        frame = frame.f_back
    return frame.f_code.co_filename if frame else ""


class Watched(MutableMapping[str, str]):
    """An environment, empty at first, that remembers who of ours read it."""

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}

    def _note(self, key: str) -> None:
        file = _reader(sys._getframe(1))
        if file.startswith(OURS) and not file.startswith(f"{ROOT}/infra/"):
            complaints.append(f"{file.removeprefix(ROOT + '/')} reads {key} at import")

    def __getitem__(self, key: str) -> str:
        self._note(key)
        return self.kept[key]

    def __setitem__(self, key: str, value: str) -> None:
        self.kept[key] = value

    def __delitem__(self, key: str) -> None:
        del self.kept[key]

    def __iter__(self) -> Iterator[str]:
        self._note("all variables")
        return iter(self.kept)

    def __len__(self) -> int:
        self._note("all variables")
        return len(self.kept)


def _audit(event: str, args: tuple[object, ...]) -> None:
    if event.startswith(WORLD) and event not in ("socket.__new__", "socket.gethostname"):
        complaints.append(f"{current}: {event}{args!r} at import")


sys.path[:0] = [f"{ROOT}/layers/core/python", ROOT]
vars(os)["environ"] = Watched()
current = ""
sys.addaudithook(_audit)
for current in MODULES:
    try:
        importlib.import_module(current)
    except Exception as error:
        complaints.append(f"{current}: {type(error).__name__}: {error}")
print(json.dumps(complaints))
