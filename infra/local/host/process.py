"""Running commands of a sandbox: output as it comes, input, signals, time limit, end."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from infra.local.host.cell import Cell
from infra.local.host.spawn import Exit, reader_of, writer_of

_CHUNK = 32 * 1024
_QUEUE = 64
# After the command's own end its background children may hold the pipes open: what is in them
# is delivered, what comes after a pause of this length is not part of the command's output.
_QUIET_SECONDS = 0.1
_SETTLE_SECONDS = 0.5


class CommandError(RuntimeError):
    """A command could not be started or does not take what was asked."""


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """What to run."""

    argv: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)
    cwd: str | None = None
    stdin: bool = False
    timeout_seconds: float | None = None
    tag: str | None = None


@dataclass(frozen=True, slots=True)
class Output:
    """Some bytes of one stream."""

    stream: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended: a code, or the signal that ended it."""

    code: int
    timed_out: bool = False

    @property
    def signal(self) -> str | None:
        """The name of the signal that ended it."""
        return signal.Signals(-self.code).name if self.code < 0 else None


class Subscription:
    """One reader of a command's output; a slow one slows the command down, a gone one does not."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Output | Ended] = asyncio.Queue(_QUEUE)
        self._closed = False

    async def put(self, item: Output | Ended) -> None:
        """Hand over one item, waiting while the reader is behind."""
        if not self._closed:
            await self._queue.put(item)

    async def get(self) -> Output | Ended:
        """Return the next item."""
        return await self._queue.get()

    def close(self) -> None:
        """Read no more; whoever waits to hand something over is let go."""
        self._closed = True
        while not self._queue.empty():
            self._queue.get_nowait()

    def cut(self, last: Ended) -> None:
        """Drop what was not read and end with this item."""
        self.close()
        self._queue.put_nowait(last)

    async def __aiter__(self) -> AsyncIterator[Output | Ended]:
        while True:
            item = await self.get()
            yield item
            if isinstance(item, Ended):
                return


class Command:
    """A command that runs, or ran, in a sandbox."""

    def __init__(self, spec: CommandSpec, cell: Cell) -> None:
        self.spec = spec
        self.pid = 0
        self.ended: Ended | None = None
        self.done = asyncio.Event()
        self._cell = cell
        self._readers: list[Subscription] = []
        self._stdin: asyncio.StreamWriter | None = None
        self._timed_out = False
        self._timer: asyncio.TimerHandle | None = None
        self._last = time.monotonic()
        self._publishing = 0
        self._tasks: list[asyncio.Task[None]] = []

    def subscribe(self) -> Subscription:
        """Return a reader of all output from now on."""
        reader = Subscription()
        self._readers.append(reader)
        return reader

    def unsubscribe(self, reader: Subscription) -> None:
        """Let a reader go."""
        reader.close()
        if reader in self._readers:
            self._readers.remove(reader)

    async def start(self, env: dict[str, str], cwd: str) -> None:
        """Start the command and learn its pid."""
        out_read, out_write = os.pipe()
        err_read, err_write = os.pipe()
        in_read, in_write = os.pipe() if self.spec.stdin else (os.open(os.devnull, os.O_RDONLY), -1)
        try:
            stdio = (in_read, out_write, err_write)
            end = await self._cell.launch(self.spec.argv, env, cwd, stdio)
        except OSError as error:
            for fd in (out_read, err_read, in_write):
                if fd >= 0:
                    os.close(fd)
            raise CommandError(str(error)) from error
        finally:
            for fd in (in_read, out_write, err_write):
                os.close(fd)
        out, err = await reader_of(out_read), await reader_of(err_read)
        if in_write >= 0:
            self._stdin = await writer_of(in_write)
        await self._learn_pid(out, err, end)
        if self.spec.timeout_seconds is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self.spec.timeout_seconds, self._expire)
        pumps = [self._pump("stdout", out), self._pump("stderr", err)]
        tasks = [asyncio.create_task(pump) for pump in pumps]
        self._tasks = [*tasks, asyncio.create_task(self._finish(end, tasks))]

    async def _learn_pid(
        self, out: asyncio.StreamReader, err: asyncio.StreamReader, end: Exit
    ) -> None:
        line = (await out.readline()).strip()
        if line.isdigit():
            self.pid = int(line)
            return
        await end.wait()
        reason = (await err.read(4096)).decode("utf-8", "replace").strip()
        raise CommandError(reason or "the command could not be started")

    async def _pump(self, stream: str, reader: asyncio.StreamReader) -> None:
        while data := await reader.read(_CHUNK):
            self._publishing += 1
            await self._publish(Output(stream, data))
            self._publishing -= 1
            self._last = time.monotonic()

    async def _publish(self, item: Output | Ended) -> None:
        for reader in tuple(self._readers):
            await reader.put(item)

    async def _finish(self, end: Exit, pumps: list[asyncio.Task[None]]) -> None:
        code = await end.wait()
        if self._timer is not None:
            self._timer.cancel()
        self._last = time.monotonic()
        while not all(pump.done() for pump in pumps):
            await asyncio.wait(pumps, timeout=_QUIET_SECONDS / 2)
            idle = time.monotonic() - self._last
            if idle >= _QUIET_SECONDS and not self._publishing:
                break
        self.ended = Ended(code, self._timed_out)
        if self._stdin is not None:
            self._stdin.close()
        await self._publish(self.ended)
        # The pumps go on: a background child must not die of a closed pipe.
        self._readers.clear()
        self.done.set()

    def _expire(self) -> None:
        self._timed_out = True
        self.kill()

    def kill(self) -> bool:
        """Kill the command and everything it started; false when it was gone."""
        return self._cell.view.kill_tree(self.pid)

    def signal(self, number: int) -> bool:
        """Signal the command's process group; false when it was gone."""
        if self.ended is not None:
            return False
        return self._cell.view.signal_group(self.pid, number)

    async def write(self, data: bytes) -> None:
        """Send bytes to the command's input."""
        if self._stdin is None:
            raise CommandError("the process was started without stdin, or it is closed")
        self._stdin.write(data)
        try:
            await self._stdin.drain()
        except (BrokenPipeError, ConnectionResetError) as error:
            raise CommandError("the process does not read its stdin any more") from error

    def close_stdin(self) -> None:
        """Send the end of the input."""
        if self._stdin is None:
            raise CommandError("the process was started without stdin, or it is closed")
        self._stdin.close()
        self._stdin = None

    async def settle(self) -> None:
        """Wait for the end of a killed command; a reader that does not read cannot hold it up."""
        try:
            async with asyncio.timeout(_SETTLE_SECONDS):
                await self.done.wait()
        except TimeoutError:
            for reader in tuple(self._readers):
                reader.cut(Ended(-signal.SIGKILL))
            await self.done.wait()
