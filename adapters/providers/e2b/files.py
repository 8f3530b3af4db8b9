"""Files in an E2B sandbox: `/files` for contents, `filesystem.Filesystem` for the rest.

A path is data: it is encoded once into a query or a JSON string, never joined into a URL.
Facts: envd.yaml and filesystem.proto of github.com/e2b-dev/infra at 54693ff.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Literal
from urllib.parse import quote

from sandbox_router.model.failure import FileMissing, ProtocolBroken, Rejected, TooLarge
from sandbox_router.ports import Content, Entry, Ref

from ..form import form
from ..http import Call
from . import declare, envd
from .envd import Agents, agent_version

TRANSFER_SECONDS = 900.0
"""No call of ours is longer; who waits for a shorter one says so (`http.waiting`)."""
Kind = Literal["file", "directory", "symlink", "other"]
_KINDS: Mapping[str, Kind] = {
    "FILE_TYPE_FILE": "file",
    "FILE_TYPE_DIRECTORY": "directory",
    "FILE_TYPE_SYMLINK": "symlink",
}


@contextmanager
def read(agents: Agents, ref: Ref, path: str, limit: int) -> Iterator[Iterator[bytes]]:
    """A file's bytes; raises FileMissing, TooLarge over `limit`. envd says how many they are."""
    call = Call(
        "GET",
        f"{agents.address(ref)}/files",
        envd.SANDBOX,
        TRANSFER_SECONDS,
        query=_query(path),
        headers=agents.headers(ref),
        verdicts=envd.PATHS,
    )
    with agents.http.stream(call) as incoming:
        yield incoming.pieces(limit, TooLarge)


def write(agents: Agents, ref: Ref, path: str, content: Content) -> None:
    """Create or replace a file as it comes; envd makes the parents."""
    kind, body = "application/octet-stream", content
    if agent_version(ref) < declare.RAW_BODY:
        kind, body = form(("file", content))  # the path in the query decides where it goes
    agents.http.call(
        Call(
            "POST",
            f"{agents.address(ref)}/files",
            envd.SANDBOX,
            TRANSFER_SECONDS,
            query=_query(path),
            headers={**agents.headers(ref), "Content-Type": kind},
            body=body,
            verdicts=envd.PATHS,
        )
    )


def move(agents: Agents, ref: Ref, source: str, destination: str) -> None:
    """Rename a file, over another one too: envd does what rename(2) does."""
    if _is_directory(agents, ref, destination):
        raise Rejected("There is a directory of this name")  # which envd would not say
    paths = {"source": source, "destination": destination}
    agents.unary(ref, "filesystem.Filesystem/Move", paths, envd.PATHS)


def _is_directory(agents: Agents, ref: Ref, path: str) -> bool:
    try:
        answer = agents.unary(ref, "filesystem.Filesystem/Stat", {"path": path}, envd.PATHS)
    except FileMissing:
        return False
    return _entry(answer.get("entry")).kind == "directory"


def remove(agents: Agents, ref: Ref, path: str) -> None:
    """Remove a file or a tree; envd itself is silent about a path that is not there."""
    agents.unary(ref, "filesystem.Filesystem/Stat", {"path": path}, envd.PATHS)
    agents.unary(ref, "filesystem.Filesystem/Remove", {"path": path}, envd.PATHS)


def children(agents: Agents, ref: Ref, path: str) -> tuple[Entry, ...]:
    """Direct children by name."""
    body = {"path": path, "depth": 1}
    answer = agents.unary(ref, "filesystem.Filesystem/ListDir", body, envd.PATHS)
    entries = answer.get("entries", [])
    if not isinstance(entries, list):
        raise ProtocolBroken
    return tuple(sorted((_entry(entry) for entry in entries), key=lambda e: e.name))


def _query(path: str) -> str:
    return f"path={quote(path, safe='')}"


def _entry(value: Any) -> Entry:
    if not isinstance(value, dict):
        raise ProtocolBroken
    name, path = value.get("name"), value.get("path")
    if not isinstance(name, str) or not isinstance(path, str):
        raise ProtocolBroken
    kind = "symlink" if value.get("symlinkTarget") else _KINDS.get(str(value.get("type")), "other")
    return Entry(name, path, kind, _size(value.get("size", 0)), _moment(value.get("modifiedTime")))


def _size(value: Any) -> int:
    text = str(value)  # JSON of protobuf writes 64-bit numbers as text
    if text.isascii() and text.isdecimal() and len(text) < 20:
        return int(text)
    raise ProtocolBroken


def _moment(value: Any) -> int | None:
    if value is None:
        return None
    try:
        return round(datetime.fromisoformat(str(value)).timestamp() * 1000)
    except (ValueError, OverflowError):
        pass
    raise ProtocolBroken
