"""Files in an OpenSandbox sandbox: execd's `/files` and `/directories`.

A path is data: it is encoded once into a query or a JSON string, never joined into a URL.
Facts: specs/execd-api.yaml and components/execd/pkg/web/controller at 3bb6fad.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any, Literal
from urllib.parse import quote

from sandbox_router.model.failure import ProtocolBroken, TooLarge
from sandbox_router.ports import Content, Entry, Ref

from ..answer import Verdicts
from ..form import form
from ..http import Call
from . import agent, declare, wire
from .agent import Agents

TRANSFER_SECONDS = 900.0
"""No call of ours is longer; who waits for a shorter one says so (`http.waiting`)."""
Kind = Literal["file", "directory", "symlink", "other"]
_KINDS: Mapping[str, Kind] = {"file": "file", "directory": "directory", "symlink": "symlink"}


@contextmanager
def read(agents: Agents, ref: Ref, path: str, limit: int) -> Iterator[Iterator[bytes]]:
    """A file's bytes; raises FileMissing, TooLarge over `limit`. execd says how many they are."""
    call = _call(agents, ref, "GET", "/files/download", path, agent.READS)
    with agents.http.stream(replace(call, timeout=TRANSFER_SECONDS)) as incoming:
        yield incoming.pieces(limit, TooLarge)


def write(agents: Agents, ref: Ref, path: str, content: Content) -> None:
    """Create or replace a file; execd makes the parents, and a mode that is not said is kept."""
    metadata = Content.of(wire.document({"path": declare.path(path)}))
    kind, body = form(("metadata", metadata), ("file", content))
    call = agents.call(ref, "POST", "/files/upload", agent.PATHS)
    agents.http.call(agent.carrying(call, kind, body, TRANSFER_SECONDS))


def move(agents: Agents, ref: Ref, source: str, destination: str) -> None:
    """Rename a file. execd does so only where nothing is: another file there is removed first, so
    that for a moment, or after an error, there is none.
    """
    moved = [{"src": declare.path(source), "dest": declare.path(destination)}]
    agents.http.call(_call(agents, ref, "DELETE", "/files", destination, agent.READS))
    call = agents.call(ref, "POST", "/files/mv", agent.READS)
    body = Content.of(wire.document(moved))
    agents.http.call(agent.carrying(call, "application/json", body, agents.seconds))


def remove(agents: Agents, ref: Ref, path: str) -> None:
    """Remove a file or a tree; execd itself is silent about a path that is not there."""
    answer = agents.http.call(_call(agents, ref, "GET", "/files/info", path, agent.READS))
    found = list(answer.object().values())
    if len(found) != 1:
        raise ProtocolBroken
    # `/files` follows symlinks, and takes one that leads nowhere for nothing; `/directories`
    # removes what has the name.
    where = "/directories" if _entry(found[0]).kind in ("directory", "symlink") else "/files"
    agents.http.call(_call(agents, ref, "DELETE", where, path, agent.PATHS))


def children(agents: Agents, ref: Ref, path: str) -> tuple[Entry, ...]:
    """Direct children by name."""
    answer = agents.http.call(_call(agents, ref, "GET", "/directories/list", path, agent.READS))
    return tuple(sorted((_entry(item) for item in answer.array()), key=lambda e: e.name))


def _call(
    agents: Agents, ref: Ref, method: str, operation: str, path: str, verdicts: Verdicts
) -> Call:
    query = f"path={quote(declare.path(path), safe='')}"
    return agents.call(ref, method, operation, verdicts, query=query)


def _entry(value: Any) -> Entry:
    path = value.get("path") if isinstance(value, dict) else None
    if not isinstance(path, str) or not path:
        raise ProtocolBroken
    size = value.get("size")
    if isinstance(size, bool) or not isinstance(size, int) or size < 0:
        raise ProtocolBroken
    kind = _KINDS.get(str(value.get("type")), "other")
    name = path.rstrip("/").rpartition("/")[2] or "/"
    return Entry(name, path, kind, size, _moment(value.get("modified_at")))


def _moment(value: Any) -> int | None:
    if value is None:
        return None
    try:
        return round(datetime.fromisoformat(str(value)).timestamp() * 1000)
    except (ValueError, OverflowError):
        pass
    raise ProtocolBroken
