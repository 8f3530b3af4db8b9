"""What an instance uses, from /proc and its directories."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass

from infra.local.host.instance import Instance
from infra.local.host.timers import clock


@dataclass(frozen=True, slots=True)
class Used:
    """A measurement."""

    cpu_percent: float
    memory_bytes: int
    disk_bytes: int


class Meter:
    """Measures instances; CPU is the share since the measurement before, or since the start."""

    def __init__(self) -> None:
        self._before: dict[str, tuple[float, float]] = {}

    async def measure(self, instance: Instance) -> Used:
        """Measure one instance now."""
        if instance.cell is None:
            return Used(0, 0, 0)
        processes = instance.cell.view.processes()
        cpu = sum(one.cpu_seconds for one in processes)
        now = clock()
        then, used_then = self._before.get(instance.id, (now - 1, cpu))
        self._before[instance.id] = (now, cpu)
        share = max(0.0, cpu - used_then) / max(0.001, now - then)
        disk = await asyncio.to_thread(_size, str(instance.place.directory))
        memory = sum(one.memory_bytes for one in processes)
        return Used(share * 100, memory, disk)


def _size(directory: str) -> int:
    total = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            try:
                total += os.lstat(os.path.join(folder, name)).st_blocks * 512
            except OSError:
                continue
    return total
