"""Two or more processes at once: threads that hand each other the turn at every port call.

A seed decides whose turn it is, so one seed is one interleaving. Unlike a rival, who acts as a
whole within one call of another's, nobody here needs to end before the other goes on.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence

Act = Callable[[], object]


class Race:
    """Runs acts together on a world that tells it of every port call."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._turn: int | None = None
        self._waiting: set[int] = set()
        self._changed = threading.Condition()
        self._mine = threading.local()
        self.failures: list[BaseException] = []
        self.turns = 0

    def turn(self) -> None:
        """A port call: wait for the next turn. Whoever does not take part goes on."""
        me = getattr(self._mine, "number", None)
        if me is None:
            return
        with self._changed:
            self._waiting.add(me)
            self._next()
            self._changed.wait_for(lambda: self._turn == me)
            self._waiting.discard(me)

    def _next(self) -> None:
        if len(self._waiting) == self._running and self._waiting:
            self._turn = self._chance.choice(sorted(self._waiting))
            self.turns += 1
            self._changed.notify_all()

    def run(self, acts: Sequence[Act]) -> None:
        """Every act to its end; the first failure is raised."""
        self._running = len(acts)
        threads = [
            threading.Thread(target=self._act, args=(number, act), daemon=True)
            for number, act in enumerate(acts)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive(), "two processes wait for each other"
        if self.failures:
            raise self.failures[0]

    def _act(self, number: int, act: Act) -> None:
        self._mine.number = number
        self.turn()
        try:
            act()
        except BaseException as failure:
            self.failures.append(failure)
        finally:
            with self._changed:
                self._running -= 1
                self._turn = None
                self._next()
