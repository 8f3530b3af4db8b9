"""The engine: instances, their life cycle and their lifetimes, whatever the vendor.

An instance is recorded as gone only after all its processes are confirmed dead and its
directory is removed. The engine alone enforces lifetimes; no client is trusted with them.
"""

from __future__ import annotations

import asyncio
import secrets
import string
from collections import deque
from collections.abc import Coroutine, Iterable
from contextlib import suppress
from pathlib import Path

from infra.local.host.captures import (
    Capture,
    CaptureError,
    Captures,
    remove_directory,
)
from infra.local.host.cell import Cell, CellError, Namespaces
from infra.local.host.instance import Gone, Instance, OnEnd, Request, State, Template, now_ms
from infra.local.host.isolation import PROCESS, Place, Tier, prepare_etc
from infra.local.host.plain import Plain
from infra.local.host.process import Command, CommandSpec, Subscription
from infra.local.host.timers import Deadlines, clock

_KEEP_GONE = 20_000
_CLOSE_SECONDS = 1.5
_LAUNCH_SECONDS = 0.002
# Starting is two forks and a few mounts; more at once only makes each wait for the others.
_STARTS_AT_ONCE = 16
_ALPHABET = string.ascii_lowercase + string.digits
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class StateError(RuntimeError):
    """The instance is in a state that does not allow this."""


class Engine:
    """All sandboxes of this host."""

    def __init__(self, tier: Tier, state: Path, templates: dict[str, Template]) -> None:
        self.tier = tier
        self.templates = templates
        self.captures = Captures(state / "captures")
        self._instances: dict[str, Instance] = {}
        self._gone: deque[str] = deque()
        self._directory = state / "instances"
        self._etc = state / "etc"
        self._deadlines = Deadlines(self._due)
        self._starts = asyncio.Semaphore(_STARTS_AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing = asyncio.Event()
        self.late_ms: deque[int] = deque(maxlen=10_000)

    def prepare(self) -> None:
        """Make the state directory ready; what a killed host left there is removed."""
        if self._directory.exists():
            remove_directory(self._directory)
        self._directory.mkdir(parents=True, mode=0o700)
        prepare_etc(self._etc)
        self.captures.prepare()

    def instances(self) -> Iterable[Instance]:
        """Return every known instance, the gone ones too, oldest first."""
        return list(self._instances.values())

    def find(self, instance_id: str, account: str | None = None) -> Instance | None:
        """Return an instance, of an account if one is given."""
        instance = self._instances.get(instance_id)
        if instance is None or (account is not None and instance.request.account != account):
            return None
        return instance

    async def create(self, request: Request) -> Instance:
        """Make a sandbox and return it running."""
        if self._closing.is_set():
            raise StateError("the host is stopping")
        instance_id = "i" + "".join(secrets.choice(_ALPHABET) for _ in range(20))
        instance = Instance(
            id=instance_id,
            request=request,
            template=request.shape or self.templates[request.template],
            place=Place(self._directory / instance_id, self._etc),
        )
        self._instances[instance_id] = instance
        try:
            async with self._starts:
                instance.cell = await self._start(instance)
        except BaseException:
            await asyncio.to_thread(remove_directory, instance.place.directory)
            del self._instances[instance_id]  # it never ran
            raise
        instance.created_ms = now_ms()
        instance.state = State.RUNNING
        self.set_lifetime(instance, request.lifetime_seconds)
        instance.watcher = self._spawn(self._watch(instance, instance.cell))
        if self._closing.is_set():
            await self.destroy(instance, Gone.HOST_STOPPED)
            raise StateError("the host is stopping")
        return instance

    async def _start(self, instance: Instance) -> Cell:
        place, limits = instance.place, instance.template.limits
        for directory in (place.directory, place.home, place.tmp):
            directory.mkdir(mode=0o700)
        place.tmp.chmod(0o1777)
        if instance.request.capture is not None:
            await self._restore(instance, instance.request.capture)
        if self.tier is PROCESS:
            if not instance.request.network:
                raise CellError("this isolation cannot cut the network")
            return await Plain.start(place, limits)
        network = instance.request.network
        return await Namespaces.start(self.tier, place, limits, network=network)

    async def _restore(self, instance: Instance, capture_id: str) -> None:
        capture = self.captures.find(capture_id, instance.request.account)
        if capture is None:
            raise CellError(f"there is no capture {capture_id}")
        try:
            await asyncio.to_thread(self.captures.restore, capture, instance.place.directory)
        except CaptureError as error:
            raise CellError(str(error)) from error

    async def _watch(self, instance: Instance, cell: Cell) -> None:
        await cell.ended()
        if instance.ending is None:
            await self.destroy(instance, Gone.KILLED)

    async def destroy(self, instance: Instance, reason: Gone) -> None:
        """Kill a sandbox and all it has; return when it is gone. Again is harmless."""
        if instance.state is State.GONE:
            return
        if instance.ending is None:
            instance.ending = self._spawn(self._end(instance, reason))
        await asyncio.shield(instance.ending)

    async def _end(self, instance: Instance, reason: Gone) -> None:
        self._deadlines.drop(instance.id)
        instance.state = State.STOPPING
        cell = instance.cell
        if cell is not None:
            await cell.kill()
        for command in tuple(instance.commands.values()):
            await command.settle()
        instance.commands.clear()
        if not self._closing.is_set():  # else all directories go at once
            await asyncio.to_thread(remove_directory, instance.place.directory)
        self._mark_gone(instance, reason)

    def _mark_gone(self, instance: Instance, reason: Gone) -> None:
        instance.state, instance.gone, instance.gone_ms = State.GONE, reason, now_ms()
        instance.cell = None
        if reason is Gone.LIFETIME and instance.ends_ms is not None:
            self.late_ms.append(instance.gone_ms - instance.ends_ms)
        self._gone.append(instance.id)
        while len(self._gone) > _KEEP_GONE:
            self._instances.pop(self._gone.popleft(), None)

    def set_lifetime(self, instance: Instance, seconds: float | None) -> None:
        """End the instance so many seconds from now, or never."""
        instance.set_end(seconds)
        if instance.ends_at is None:
            self._deadlines.drop(instance.id)
        elif not instance.ageless:
            self._deadlines.set(instance.id, instance.ends_at)

    def _due(self, instance_id: str) -> None:
        instance = self._instances.get(instance_id)
        if instance is None or not instance.alive or instance.ageless:
            return
        self._spawn(self._lifetime_over(instance))

    async def _lifetime_over(self, instance: Instance) -> None:
        if instance.request.on_end is OnEnd.PAUSE:
            with suppress(StateError):
                await self.pause(instance, keep_memory=instance.request.keep_memory)
            return
        await self.destroy(instance, Gone.LIFETIME)

    async def pause(self, instance: Instance, *, keep_memory: bool = True) -> None:
        """Freeze a sandbox where it stands, or drop its processes and keep its disk."""
        async with instance.changing:
            if instance.state is not State.RUNNING or instance.cell is None:
                raise StateError(f"the sandbox is {instance.state.value}")
            instance.state = State.PAUSING
            if not instance.request.ends_paused:
                # A paused instance does not time out; resume sets a new end.
                self._deadlines.drop(instance.id)
            view = instance.cell.view
            try:
                if keep_memory:
                    instance.stopped = await asyncio.to_thread(view.stop_all)
                else:
                    await asyncio.to_thread(view.kill_all)
                    instance.stopped = frozenset()
            finally:
                if instance.state is State.PAUSING:
                    instance.state = State.PAUSED

    async def resume(self, instance: Instance, lifetime_seconds: float | None) -> None:
        """Let a paused sandbox run on, with a new end."""
        async with instance.changing:
            if instance.state is not State.PAUSED or instance.cell is None:
                raise StateError(f"the sandbox is {instance.state.value}")
            instance.cell.view.continue_all(instance.stopped)
            instance.cell.nudge()
            instance.stopped = frozenset()
            instance.state = State.RUNNING
            self.set_lifetime(instance, lifetime_seconds)

    async def capture(self, instance: Instance, capture: Capture, *, seconds: float = 0) -> None:
        """Copy the disk into a capture that was begun, `seconds` from now, and make it ready.

        The processes stand still meanwhile, so that the copy is of one moment.
        """
        instance.capturing += 1
        try:
            await asyncio.sleep(seconds)
            async with instance.changing:
                await self._copy(instance, capture)
            self.captures.finish(capture)
        except (StateError, CaptureError, OSError):
            await asyncio.to_thread(self.captures.fail, capture)
            raise
        finally:
            instance.capturing -= 1

    def capture_later(self, instance: Instance, capture: Capture, *, seconds: float) -> None:
        """Do that while the caller goes on; the capture's state tells how it went."""

        async def work() -> None:
            with suppress(StateError, CaptureError, OSError):
                await self.capture(instance, capture, seconds=seconds)

        self._spawn(work())

    async def _copy(self, instance: Instance, capture: Capture) -> None:
        while instance.launching:
            await asyncio.sleep(_LAUNCH_SECONDS)
        if instance.state is not State.RUNNING or instance.cell is None:
            raise StateError(f"the sandbox is {instance.state.value}")
        cell = instance.cell
        stopped = await asyncio.to_thread(cell.view.stop_all)
        try:
            await asyncio.to_thread(self.captures.fill, capture, instance.place.directory)
        finally:
            if instance.is_in(State.RUNNING):
                cell.view.continue_all(stopped)
                cell.nudge()
        if not instance.is_in(State.RUNNING):
            raise StateError("the sandbox ended meanwhile")  # so did its disk, half copied

    async def run(self, instance: Instance, spec: CommandSpec) -> tuple[Command, Subscription]:
        """Start a command in a running sandbox; the subscription has its output from the start."""
        async with instance.changing:
            pass  # what comes while it is being changed waits, and then sees what it is
        if instance.state is not State.RUNNING or instance.cell is None:
            raise StateError(f"the sandbox is {instance.state.value}")
        cell = instance.cell
        env = {"PATH": _PATH, "HOME": cell.home, "USER": "user", "LOGNAME": "user"}
        env |= {"LANG": "C.UTF-8", "TMPDIR": cell.tmp} | instance.request.env | spec.env
        command = Command(spec, cell)
        reader = command.subscribe()
        instance.launching += 1
        try:
            await command.start(env, cell.files.absolute(spec.cwd or "~"))
        finally:
            instance.launching -= 1
        instance.commands[command.pid] = command
        self._spawn(self._forget(instance, command))
        return command, reader

    async def _forget(self, instance: Instance, command: Command) -> None:
        await command.done.wait()
        if instance.commands.get(command.pid) is command and instance.state is not State.STOPPING:
            del instance.commands[command.pid]

    async def close(self) -> None:
        """Destroy everything; the host is stopping."""
        self._closing.set()
        self._deadlines.close()
        until = clock() + _CLOSE_SECONDS
        living = [one for one in self._instances.values() if one.state is not State.GONE]
        endings = [self._spawn(self.destroy(one, Gone.HOST_STOPPED)) for one in living if one.cell]
        if endings:
            # All are killed in the first round of the loop; what is waited for is the proof.
            await asyncio.wait(endings, timeout=_CLOSE_SECONDS)
        for directory in list(self._directory.iterdir()):
            if clock() > until:
                return  # thousands take longer than a stop may; the next start removes the rest
            remove_directory(directory)

    def _spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
