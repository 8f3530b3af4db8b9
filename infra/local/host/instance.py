"""What the engine knows of one sandbox, in words of no vendor."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from enum import Enum

from infra.local.host.cell import Cell
from infra.local.host.isolation import Limits, Place
from infra.local.host.process import Command
from infra.local.host.timers import clock


class State(Enum):
    """Where an instance is in its life."""

    STARTING = "starting"
    RUNNING = "running"
    PAUSING = "pausing"
    PAUSED = "paused"
    STOPPING = "stopping"
    GONE = "gone"


class Gone(Enum):
    """Why an instance is gone."""

    DELETED = "deleted"
    LIFETIME = "lifetime"
    KILLED = "killed"
    HOST_STOPPED = "host_stopped"


class OnEnd(Enum):
    """What the end of the lifetime does."""

    DESTROY = "destroy"
    PAUSE = "pause"


@dataclass(frozen=True, slots=True)
class Template:
    """A size that instances are made of."""

    vcpu: int
    memory_mib: int
    disk_mib: int

    @property
    def limits(self) -> Limits:
        """The rlimits of its processes."""
        return Limits(self.memory_mib, self.disk_mib)


@dataclass(frozen=True, slots=True)
class Request:
    """What a dialect asks the engine to make; `extra` is the dialect's own, never read here.

    shape: instead of the template's. ends_paused: does the lifetime end it while paused too?
    capture: the id of what its disk is made of.
    """

    account: str
    dialect: str
    template: str
    lifetime_seconds: float | None
    metadata: dict[str, str] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    on_end: OnEnd = OnEnd.DESTROY
    keep_memory: bool = True
    network: bool = True
    shape: Template | None = None
    ends_paused: bool = False
    capture: str | None = None
    extra: dict[str, object] = field(default_factory=dict)


def now_ms() -> int:
    """Return the wall clock in milliseconds."""
    return time.time_ns() // 1_000_000


@dataclass(slots=True)
class Instance:
    """One sandbox: its request, its state, its processes, its end.

    capturing, launching: how many captures of it, and starts in it, are on their way.
    """

    id: str
    request: Request
    template: Template
    place: Place
    created_ms: int = field(default_factory=now_ms)
    state: State = State.STARTING
    ends_ms: int | None = None
    ends_at: float | None = None
    gone_ms: int | None = None
    gone: Gone | None = None
    cell: Cell | None = None
    commands: dict[int, Command] = field(default_factory=dict)
    stopped: frozenset[int] = frozenset()
    capturing: int = 0
    launching: int = 0
    changing: asyncio.Lock = field(default_factory=asyncio.Lock)
    ending: asyncio.Task[None] | None = None
    watcher: asyncio.Task[None] | None = None

    def set_end(self, seconds: float | None) -> None:
        """Put the end of the lifetime so many seconds from now."""
        self.ends_at = None if seconds is None else clock() + seconds
        self.ends_ms = None if seconds is None else now_ms() + round(seconds * 1000)

    def seconds_left(self) -> float:
        """Return how long the lifetime still is."""
        return float("inf") if self.ends_at is None else self.ends_at - clock()

    def is_in(self, *states: State) -> bool:
        """Whether it is in one of these states now, which an await may have changed."""
        return self.state in states

    @property
    def ageless(self) -> bool:
        """Whether its lifetime stands still, because it is paused."""
        return self.state is State.PAUSED and not self.request.ends_paused

    @property
    def alive(self) -> bool:
        """Whether it can be asked for anything, paused or not."""
        return self.state in (State.RUNNING, State.PAUSING, State.PAUSED)

    def process_count(self) -> int:
        """Return how many processes it has now."""
        if self.cell is None or not self.alive:
            return 0
        return len(self.cell.view.processes())
