"""Reading and signalling the processes of one sandbox through a /proc directory.

Where a sandbox has a pid namespace, its own /proc lists its processes and nothing else, and a
directory of it serves as a pidfd: no pid is ever translated, and none can be hit after its reuse.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
# A fork between listing and signalling is caught by the next pass; this bounds the passes.
_PASSES = 20


@dataclass(frozen=True, slots=True)
class Process:
    """One process as its stat line tells it."""

    pid: int
    state: str
    parent: int
    group: int
    session: int
    cpu_seconds: float
    memory_bytes: int

    @property
    def dead(self) -> bool:
        """Whether only its exit status is left."""
        return self.state in "ZXx"


class ProcView:
    """The processes of one sandbox, seen through an open /proc directory."""

    def __init__(self, directory: int, members: Callable[[list[Process]], list[Process]]) -> None:
        self._directory = directory
        self._members = members

    def close(self) -> None:
        """Let go of the directory."""
        os.close(self._directory)

    def processes(self) -> list[Process]:
        """Return the sandbox's living processes, without its own pid 1 or keeper."""
        try:
            names = os.listdir(self._directory)
        except OSError:
            return []
        found = [self._read(int(name)) for name in names if name.isdigit()]
        return self._members([one for one in found if one is not None and not one.dead])

    def _read(self, pid: int) -> Process | None:
        try:
            fd = os.open(f"{pid}/stat", os.O_RDONLY, dir_fd=self._directory)
        except OSError:
            return None
        try:
            line = os.read(fd, 4096).decode("utf-8", "replace")
        except OSError:
            return None
        finally:
            os.close(fd)
        # The name is in parentheses and may hold anything, parentheses too.
        words = line.rpartition(")")[2].split()
        return Process(
            pid=pid,
            state=words[0],
            parent=int(words[1]),
            group=int(words[2]),
            session=int(words[3]),
            cpu_seconds=(int(words[11]) + int(words[12])) / _TICKS,
            memory_bytes=int(words[21]) * _PAGE,
        )

    def signal(self, pid: int, number: int) -> bool:
        """Signal one process; false when it is gone."""
        try:
            fd = os.open(str(pid), os.O_RDONLY | os.O_DIRECTORY, dir_fd=self._directory)
        except OSError:
            return False
        try:
            signal.pidfd_send_signal(fd, number)
        except ProcessLookupError:
            return False
        finally:
            os.close(fd)
        return True

    def signal_group(self, pid: int, number: int) -> bool:
        """Signal every process of the group that a command leads; false when none is left."""
        hit = [self.signal(one.pid, number) for one in self.processes() if one.group == pid]
        return any(hit)

    def kill_tree(self, pid: int) -> bool:
        """Kill a command with its session, group and descendants; false when it was gone."""
        found = False
        for _ in range(_PASSES):
            targets = _tree(self.processes(), pid)
            if not targets:
                break
            found = True
            for target in targets:
                self.signal(target, signal.SIGKILL)
        return found

    def kill_all(self) -> None:
        """Kill everything but the sandbox's own pid 1 or keeper."""
        for _ in range(_PASSES):
            targets = self.processes()
            if not targets:
                return
            for target in targets:
                self.signal(target.pid, signal.SIGKILL)

    def stop_all(self) -> frozenset[int]:
        """Stop every running process; return those that were not stopped before."""
        stopped: set[int] = set()
        for _ in range(_PASSES):
            targets = [one.pid for one in self.processes() if one.state not in "Tt"]
            fresh = [pid for pid in targets if pid not in stopped]
            for pid in targets:
                with suppress(PermissionError):
                    self.signal(pid, signal.SIGSTOP)
            stopped.update(fresh)
            if not targets:
                break
        return frozenset(stopped)

    def continue_all(self, pids: Iterable[int]) -> None:
        """Let the given processes run on."""
        for pid in pids:
            self.signal(pid, signal.SIGCONT)


def _tree(processes: list[Process], root: int) -> set[int]:
    wanted = {one.pid for one in processes if root in (one.pid, one.group, one.session)}
    while True:
        more = {one.pid for one in processes if one.parent in wanted} - wanted
        if not more:
            return wanted
        wanted |= more


def below(processes: list[Process], root: int) -> list[Process]:
    """Return the descendants of a process among the given ones."""
    inside = {root}
    while True:
        more = {one.pid for one in processes if one.parent in inside} - inside
        if not more:
            return [one for one in processes if one.pid in inside and one.pid != root]
        inside |= more
