"""What some providers can do besides; a provider has an ability when it has its methods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from ..model.secret import Secret
from .objects import Content
from .provider import Instance, Ref


@runtime_checkable
class Extends(Protocol):
    """The provider's own lifetime limit can be moved."""

    def extend(self, instance_id: str, lifetime_seconds: int) -> None:
        """Set the limit to this many seconds from now; raises Gone."""
        ...


@runtime_checkable
class Pauses(Protocol):
    """Instances can be paused and resumed; both are safe to repeat."""

    def pause(self, instance_id: str, keep: str) -> None:
        """Pause, keeping `memory` or `disk`; raises Gone."""
        ...

    def resume(self, instance_id: str, lifetime_seconds: int) -> Instance:
        """Resume with an explicit remaining lifetime; raises Gone."""
        ...


@dataclass(frozen=True)
class Command:
    """One command; `shell` text or `argv`, never both. Never logged."""

    argv: tuple[str, ...] | None = field(default=None, repr=False)
    shell: str | None = field(default=None, repr=False)
    cwd: str | None = None
    env: Mapping[str, Secret] = field(default_factory=dict, repr=False)
    stdin: bytes | None = field(default=None, repr=False)
    timeout_seconds: float = 60.0


@dataclass(frozen=True)
class Output:
    """Bytes a command wrote, as they came; none are a sign that it still runs."""

    stream: Literal["stdout", "stderr"]
    data: bytes


@dataclass(frozen=True)
class Exit:
    """How a command ended; exit_code None when the provider does not say (never invented)."""

    exit_code: int | None
    signal: str | None = None
    timed_out: bool = False


@runtime_checkable
class RunsCommands(Protocol):
    """Commands run inside a live instance."""

    def run(self, ref: Ref, command: Command) -> Iterator[Output | Exit]:
        """Output in order, then exactly one Exit; raises Unknown when the answer is lost, Gone,
        Refused. Closing the iterator ends the command; a silent one yields signs of life every few
        seconds where the provider has them, so that closing is not late.
        """
        ...


@dataclass(frozen=True)
class Entry:
    """One directory entry. Size in bytes, modified_at in ms."""

    name: str
    path: str
    kind: Literal["file", "directory", "symlink", "other"]
    size: int | None
    modified_at: int | None


@runtime_checkable
class HoldsFiles(Protocol):
    """Files inside a live instance; paths are absolute and arrive byte-exact. Raises FileMissing,
    Gone.
    """

    def read_file(self, ref: Ref, path: str, limit: int) -> AbstractContextManager[Iterator[bytes]]:
        """The content in pieces, each small; it was whole if they end without an error. Raises
        TooLarge at the latest with the piece that is over `limit` bytes.
        """
        ...

    def write_file(self, ref: Ref, path: str, content: Content) -> None:
        """Create or replace, piece by piece; parents are created. After an error there may be a
        part of it.
        """
        ...

    def move_file(self, ref: Ref, source: str, destination: str) -> None:
        """Rename a file, over another file too; a directory there is Rejected. Nobody ever sees a
        part of it under the new name; for a moment there may be nothing.
        """
        ...

    def remove_file(self, ref: Ref, path: str) -> None:
        """Remove a file or a directory with its content."""
        ...

    def list_directory(self, ref: Ref, path: str) -> tuple[Entry, ...]:
        """Direct children, by name."""
        ...


@dataclass(frozen=True)
class Endpoint:
    """A preview URL and the headers it wants; `token` is shown to the client once asked for."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    visibility: Literal["private", "public"] = "private"
    expires_at: int | None = None


@runtime_checkable
class OpensPorts(Protocol):
    """Ports of a live instance can be reached from outside, privately."""

    def open_port(self, ref: Ref, port: int) -> Endpoint:
        """The preview endpoint of a port."""
        ...

    def close_port(self, ref: Ref, port: int) -> None:
        """End the exposure where the provider has one to end."""
        ...


CaptureState = Literal["creating", "ready", "failed"]


@dataclass(frozen=True)
class Capture:
    """The provider's side of a snapshot. name: what we called it; size and birth where it tells
    them, in bytes and ms.
    """

    id: str
    state: CaptureState
    name: str | None = None
    size_bytes: int | None = None
    created_at: int | None = None


@dataclass(frozen=True)
class CapturePage:
    """One page of a provider's captures; `cursor` None at the end."""

    captures: tuple[Capture, ...]
    cursor: str | None


@runtime_checkable
class Snapshots(Protocol):
    """Instances can be captured, and instances made from captures (`Order.from_capture`)."""

    def capture(self, instance_id: str, name: str, contents: str, *, timeout: float) -> Capture:
        """Capture `memory` or `disk` under a name of at most 52 of `[a-z0-9-]`; a repeat under one
        name finds the first where the profile says so; raises Gone.
        """
        ...

    def find_capture(self, instance_id: str, name: str) -> Capture | None:
        """The capture of this instance under this name, if the provider shows one now."""
        ...

    def get_capture(self, capture_id: str) -> Capture | None:
        """Its truthful state; None means the provider says it is gone."""
        ...

    def destroy_capture(self, capture_id: str) -> None:
        """Ask for its end; gone already is success."""
        ...

    def captures(self, cursor: str | None) -> CapturePage:
        """One page of all the account's captures, ours or not."""
        ...
