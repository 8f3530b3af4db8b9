"""The storm: which process is killed or stopped next, and when; one seed, one order of things."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable

from tests.local.chaos.plant import Plant

CHOICES = {
    "kill router": 53,
    "kill router twice": 10,
    "kill host": 5,
    "kill both": 2,
    "kill router, host stopped": 4,
    "stop router": 14,
    "stop host": 12,
}
KILLS = {
    "kill router": 1,
    "kill router twice": 2,
    "kill host": 1,
    "kill both": 2,
    "kill router, host stopped": 1,
}


START_SECONDS = 1.0
"""A router's start takes about half of it, and twice as long on a busy machine."""


TELL_KILLS = 20


class Storm:
    """Breaks a plant until it was killed often enough."""

    def __init__(self, plant: Plant, kills: int, seed: int, pace: float) -> None:
        self._plant, self._kills, self._pace = plant, kills, pace
        self._chance = random.Random(seed)
        self.done: Counter[str] = Counter()

    @property
    def kills(self) -> int:
        """How many processes were killed."""
        return sum(KILLS.get(what, 0) * times for what, times in self.done.items())

    @property
    def stops(self) -> int:
        """How many were stopped for a while."""
        return sum(times for what, times in self.done.items() if "stop" in what)

    def blow(self, say: Callable[[str], None]) -> None:
        """All of it."""
        began, told = time.monotonic(), 0
        while self.kills < self._kills:
            self._pause(1.6)
            (what,) = self._chance.choices(list(CHOICES), list(CHOICES.values()))
            self.done[what] += 1
            self._do(what)
            if self.kills >= told + TELL_KILLS:
                told = self.kills
                say(f"{told} kills in {time.monotonic() - began:.0f} s")

    def _do(self, what: str) -> None:
        plant = self._plant
        match what:
            case "kill router":
                plant.kill_router()
                self._pause(0.7)
                plant.start_router()
            case "kill router twice":
                plant.kill_router()
                plant.kill_starting_router(self._chance.uniform(0.05, START_SECONDS))
                plant.start_router()
            case "kill host":
                plant.kill_host()
                self._pause(1.5)
                plant.start_host()
            case "kill both":
                plant.kill_host()
                plant.kill_router()
                if self._chance.random() < 0.5:
                    plant.start_host()
                plant.start_router()
            case "kill router, host stopped":
                plant.kill_router()
                plant.start_router_before_host(self._chance.uniform(0.1, 2.0))
            case "stop router":
                with plant.router_stopped():
                    self._pause(4.0)
            case _:
                with plant.host_stopped():
                    self._pause(4.0)

    def _pause(self, most: float) -> None:
        time.sleep(self._chance.uniform(0.1, most) * self._pace)
