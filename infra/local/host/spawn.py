"""Child processes for the host: started cheaply, reaped through pidfds, never through threads."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Mapping, Sequence
from typing import IO, Protocol

PLAIN_ENV: Mapping[str, str] = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
}


class Exit(Protocol):
    """What can be awaited for the end of a process."""

    async def wait(self) -> int:
        """Return the exit code, negative for the signal that ended it."""


class Child:
    """A direct child of the host process."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        stdin: int | IO[bytes] = subprocess.DEVNULL,
        stdout: int | IO[bytes] = subprocess.DEVNULL,
        stderr: int | IO[bytes] = subprocess.DEVNULL,
    ) -> None:
        # The caller's environment never reaches these helpers: a sandbox's own variables
        # (LD_PRELOAD!) are set inside its namespace, by env(1).
        self._popen = subprocess.Popen(
            list(argv),
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            env=dict(PLAIN_ENV),
            cwd="/",
            start_new_session=True,
        )
        self.pid = self._popen.pid
        self.future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._pidfd = os.pidfd_open(self.pid)
        asyncio.get_running_loop().add_reader(self._pidfd, self._reap)

    def _reap(self) -> None:
        asyncio.get_running_loop().remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._pidfd = -1
        code = self._popen.wait()
        if not self.future.done():
            self.future.set_result(code)

    @property
    def ended(self) -> bool:
        """Whether the process was reaped."""
        return self.future.done()

    async def wait(self) -> int:
        """Return the exit code, negative for the signal that ended it."""
        return await asyncio.shield(self.future)

    def signal(self, number: int) -> None:
        """Send a signal, if the process is still there."""
        if not self.future.done():
            self._popen.send_signal(number)


async def reader_of(fd: int) -> asyncio.StreamReader:
    """Return a stream over the read end of a pipe, which it then owns."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=64 * 1024)
    await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(fd, "rb", buffering=0)
    )
    return reader


async def writer_of(fd: int) -> asyncio.StreamWriter:
    """Return a stream over the write end of a pipe, which it then owns."""
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.connect_write_pipe(
        asyncio.streams.FlowControlMixin, os.fdopen(fd, "wb", buffering=0)
    )
    return asyncio.StreamWriter(transport, protocol, None, loop)


def children_of(pid: int) -> list[int]:
    """Return the direct children of a process."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as lines:
            return [int(word) for word in lines.read().split()]
    except FileNotFoundError:
        if not os.path.exists(f"/proc/{pid}"):
            return []
        # A kernel without CONFIG_PROC_CHILDREN: look at every process's parent.
        return [other for other in all_pids() if parent_of(other) == pid]


def all_pids() -> list[int]:
    """Return every process this process can see."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def parent_of(pid: int) -> int | None:
    """Return the parent of a process, or nothing when it is gone."""
    words = _stat(pid)
    return int(words[1]) if words else None


def state_of(pid: int) -> str:
    """Return the state letter of a process, empty when it is gone."""
    words = _stat(pid)
    return words[0] if words else ""


def _stat(pid: int) -> list[str]:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as lines:
            return lines.read().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []
