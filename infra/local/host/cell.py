"""A cell: the walls of one sandbox and the way to run something inside them."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Protocol

from infra.local.host import isolation
from infra.local.host.files import Tree
from infra.local.host.isolation import Limits, Place, Tier
from infra.local.host.procfs import ProcView
from infra.local.host.spawn import Child, Exit, children_of, reader_of, state_of

_START_SECONDS = 15.0
_END_SECONDS = 10.0
_NUDGE_SECONDS = 0.02
_LOOK_SECONDS = 1.0


class CellError(RuntimeError):
    """The walls of a sandbox could not be built or taken down."""


class Cell(Protocol):
    """The walls of one sandbox, whatever they are made of."""

    view: ProcView
    files: Tree
    home: str
    tmp: str

    async def launch(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        cwd: str,
        stdio: tuple[int, int, int],
    ) -> Exit:
        """Run the shim, which prints its pid on stdout and becomes `argv`."""

    def nudge(self) -> None:
        """Wake what stopped along with the processes, after these were continued."""

    async def kill(self) -> None:
        """Kill everything inside; return when all of it is confirmed dead."""

    async def ended(self) -> None:
        """Return when the cell has ended, for whatever reason."""


class Namespaces:
    """A cell of kernel namespaces, held by its pid 1 and entered by nsenter."""

    view: ProcView
    files: Tree
    home = isolation.HOME
    tmp = "/tmp"

    def __init__(
        self, tier: Tier, place: Place, limits: Limits, child: Child, lifeline: socket.socket
    ) -> None:
        self._limits = limits
        self._child = child
        # pid 1 reads from the other end: it ends when this process does, even by SIGKILL.
        self._lifeline = lifeline
        self._entered: set[Child] = set()
        self._init = 0
        self._init_fd = -1
        self._enter: list[str] = []
        self._place = place
        self._tier = tier

    @classmethod
    async def start(cls, tier: Tier, place: Place, limits: Limits, *, network: bool) -> Namespaces:
        """Build the namespaces and return when their pid 1 runs."""
        ours, theirs = socket.socketpair()
        read, write = os.pipe()
        log = place.directory / "start.log"
        with theirs, open(log, "wb") as errors:
            command = isolation.start_command(tier, place, network=network)
            child = Child(command, stdin=theirs.fileno(), stdout=write, stderr=errors)
        os.close(write)
        cell = cls(tier, place, limits, child, ours)
        try:
            await asyncio.wait_for(cell._ready(read, network=network), _START_SECONDS)
        except BaseException as error:
            await cell._give_up()
            if isinstance(error, (OSError, TimeoutError, CellError)):
                reason = log.read_text(encoding="utf-8", errors="replace").strip()
                raise CellError(reason or f"the sandbox did not start: {error}") from error
            raise
        return cell

    async def _ready(self, read: int, *, network: bool) -> None:
        reader = await reader_of(read)
        line = await reader.readline()
        if line != b"ready\n":
            raise CellError("pid 1 did not answer")
        children = children_of(self._child.pid)
        if len(children) != 1:
            raise CellError("pid 1 is gone")
        self._init = children[0]
        self._init_fd = os.pidfd_open(self._init)
        root = os.open(f"/proc/{self._init}/root", os.O_PATH | os.O_DIRECTORY)
        proc = os.open("proc", os.O_RDONLY | os.O_DIRECTORY, dir_fd=root)
        self.view = ProcView(proc, lambda found: [one for one in found if one.pid != 1])
        self.files = Tree(root, self.home, forbidden_device=os.fstat(proc).st_dev)
        self._enter = isolation.enter_command(self._tier, self._init, network=network)

    async def _give_up(self) -> None:
        self._lifeline.close()
        for pid in children_of(self._child.pid) if not self._child.ended else []:
            with suppress(ProcessLookupError):
                os.kill(pid, 9)
        self._child.signal(signal.SIGKILL)
        await self._child.wait()
        self._close()

    async def launch(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        cwd: str,
        stdio: tuple[int, int, int],
    ) -> Exit:
        """Run the shim inside the namespaces, under the rlimits."""
        line = [*self._enter, *isolation.limit_command(self._limits), "setsid"]
        # The environment is set here, inside: on this side it could steer nsenter itself.
        line += ["env", "-i", *(f"{name}={value}" for name, value in env.items())]
        line += ["sh", "-c", isolation.SHIM, "sh", cwd, *argv]
        child = Child(line, stdin=stdio[0], stdout=stdio[1], stderr=stdio[2])
        self._entered.add(child)
        return _Entered(child, self._entered)

    def nudge(self) -> None:
        """Wake the helpers that stopped along with what they wait for."""
        for child in self._entered:
            _unstick(child)

    async def kill(self) -> None:
        """Kill pid 1, and with it, by the kernel, all of its namespace."""
        if self._init_fd >= 0:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._init_fd, signal.SIGKILL)
        self._lifeline.close()
        # pid 1 is reaped only after everything in its namespace was, by nsenter where it waits.
        async with asyncio.timeout(_END_SECONDS):
            while not self._child.ended:
                self.nudge()
                await asyncio.wait([self._child.future], timeout=_NUDGE_SECONDS)
        await _gone(self._init_fd)
        self._close()

    async def ended(self) -> None:
        """Return when the process that holds the namespaces has ended."""
        await self._child.wait()

    def _close(self) -> None:
        if self._init_fd >= 0:
            os.close(self._init_fd)
            self._init_fd = -1
            self.view.close()
            self.files.close()


class _Entered:
    """The end of a command that nsenter waits for.

    nsenter stops itself when its child stops, and does not notice that the child goes on.
    """

    def __init__(self, child: Child, entered: set[Child]) -> None:
        self._child = child
        self._entered = entered

    async def wait(self) -> int:
        """Return the exit code, negative for the signal that ended it."""
        while not self._child.ended:
            await asyncio.wait([self._child.future], timeout=_LOOK_SECONDS)
            _unstick(self._child)
        self._entered.discard(self._child)
        return await self._child.wait()


def _unstick(child: Child) -> None:
    if child.ended or state_of(child.pid) != "T":
        return
    if all(state_of(inner) != "T" for inner in children_of(child.pid)):
        child.signal(signal.SIGCONT)


async def _gone(pidfd: int) -> None:
    """Return when the process of a pidfd has ended."""
    if pidfd < 0:
        return
    loop = asyncio.get_running_loop()
    done = asyncio.Event()
    loop.add_reader(pidfd, done.set)
    try:
        await asyncio.wait_for(done.wait(), _END_SECONDS)
    finally:
        loop.remove_reader(pidfd)
