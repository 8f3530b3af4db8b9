"""The `process` tier: a cell without walls, whose processes a keeper holds together."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from infra.local.host import isolation
from infra.local.host.cell import CellError
from infra.local.host.files import Tree
from infra.local.host.isolation import Limits, Place
from infra.local.host.procfs import ProcView, below
from infra.local.host.spawn import PLAIN_ENV, Exit

_START_SECONDS = 15.0
_END_SECONDS = 10.0
_MAX_MESSAGE = 64 * 1024


class Plain:
    """A cell of ordinary processes under rlimits, in directories of their own."""

    view: ProcView
    files: Tree
    home: str
    tmp: str
    _popen: subprocess.Popen[bytes]
    _channel: socket.socket
    _listener: asyncio.Task[None]

    def __init__(self, place: Place, limits: Limits) -> None:
        self._place = place
        self._root = place.directory / "root"
        self._limits = [
            [resource.RLIMIT_DATA, limits.memory_mib * 1024 * 1024],
            [resource.RLIMIT_FSIZE, limits.disk_mib * 1024 * 1024],
            # Counted over all processes of this user here, so a small number would hit others.
            [resource.RLIMIT_NPROC, max(limits.processes, 8192)],
            [resource.RLIMIT_NOFILE, limits.files],
            [resource.RLIMIT_CORE, 0],
        ]
        self._waiting: dict[int, asyncio.Future[int]] = {}
        self._started = 0
        self._closed = asyncio.Event()

    @classmethod
    async def start(cls, place: Place, limits: Limits) -> Plain:
        """Start the keeper and return when it serves."""
        cell = cls(place, limits)
        for part in ("home/user", "tmp"):
            (cell._root / part).mkdir(parents=True, exist_ok=True)  # a capture's are there
        cell.home, cell.tmp = str(cell._root / "home/user"), str(cell._root / "tmp")
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        # By path and isolated (-I): nothing that a user's environment says may steer it.
        program = [sys.executable, "-I", "-S", str(Path(__file__).with_name("keeper.py"))]
        with theirs:
            cell._popen = subprocess.Popen(
                [*program, str(theirs.fileno())],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=dict(PLAIN_ENV),
                start_new_session=True,
            )
        cell._channel = ours
        cell._listener = asyncio.create_task(cell._listen())
        proc = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY)
        keeper = cell._popen.pid
        cell.view = ProcView(proc, lambda found: below(found, keeper))
        root = os.open(cell._root, os.O_PATH | os.O_DIRECTORY)
        cell.files = Tree(root, isolation.HOME, prefix=str(cell._root))
        try:
            async with asyncio.timeout(_START_SECONDS):
                await asyncio.shield(cell._future(0))
        except TimeoutError as error:
            await cell.kill()
            raise CellError("the keeper did not start") from error
        return cell

    def _future(self, number: int) -> asyncio.Future[int]:
        return self._waiting.setdefault(number, asyncio.get_running_loop().create_future())

    async def _listen(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                data = await loop.sock_recv(self._channel, _MAX_MESSAGE)
            except OSError:
                data = b""
            if not data:
                break
            self._heard(json.loads(data))
        for future in self._waiting.values():
            if not future.done():
                future.set_result(-9)
        while self._popen.poll() is None:
            await asyncio.sleep(0.005)
        self._closed.set()

    def _heard(self, message: dict[str, Any]) -> None:
        if "ready" in message:
            self._future(0).set_result(0)
            return
        future = self._waiting.pop(message["number"])
        if "error" in message:
            future.set_exception(OSError(message["error"]))
        else:
            future.set_result(message["code"])

    async def launch(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        cwd: str,
        stdio: tuple[int, int, int],
    ) -> Exit:
        """Have the keeper run the shim under the rlimits."""
        self._started += 1
        number = self._started
        future = self._future(number)
        line = ["/bin/sh", "-c", isolation.SHIM, "sh", self._real(cwd), *argv]
        message = {"number": number, "argv": line, "env": dict(env), "limits": self._limits}
        # One small datagram to a socket with an empty buffer: it does not block.
        socket.send_fds(self._channel, [json.dumps(message).encode()], list(stdio))
        return _Remote(future)

    def _real(self, path: str) -> str:
        """Translate a path as the API names it to what a process without a root sees."""
        for prefix, real in ((isolation.HOME, self.home), ("/tmp", self.tmp)):
            if path == prefix or path.startswith(prefix + "/"):
                return real + path[len(prefix) :]
        return path

    def nudge(self) -> None:
        """Nothing here stops along with the processes."""

    async def kill(self) -> None:
        """Close the socket; the keeper kills every descendant and then ends itself."""
        self.view.kill_all()
        self._channel.shutdown(socket.SHUT_RDWR)
        async with asyncio.timeout(_END_SECONDS):
            await self._closed.wait()
        self._channel.close()
        self.view.close()
        self.files.close()

    async def ended(self) -> None:
        """Return when the keeper has ended."""
        await self._closed.wait()


class _Remote:
    """The end of a process that the keeper started."""

    def __init__(self, future: asyncio.Future[int]) -> None:
        self._future = future

    async def wait(self) -> int:
        """Return the exit code, negative for the signal that ended it."""
        return await asyncio.shield(self._future)
