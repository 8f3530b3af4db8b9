"""AWS under faults: microburst between the functions' clients and the emulator.

Every function calls through it. Without rules it only passes on; `storm` sets some for a while, and
what fired is counted. The emulator's own pollers are not its clients: what AWS does itself (taking
messages for a function, reading the stream) is not under these faults.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.cloud.e2e.processes import Child, free_port, listening

START_SECONDS = 30.0
MOST = 2000
"""Microburst remembers so many of what it did."""
Rule = dict[str, Any]
Fired = Counter[tuple[str, str, str]]
"""Service, operation, what was done -> how often."""


class Faults:
    """The proxy in front of `upstream`, as a process of its own."""

    def __init__(self, python: Path, upstream: str, env: dict[str, str], root: Path) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        command = [str(python), "-m", "microburst", "--upstream", upstream, "--port", str(port)]
        self.process = Child(command, env, root, root / "faults.log")
        listening(port, self.process, START_SECONDS)
        self._control = httpx.Client(base_url=f"{self.url}/_microburst", trust_env=False)

    @contextmanager
    def storm(self, rules: Sequence[Rule]) -> Iterator[Fired]:
        """These rules, the first that fires for a call; what fired is there when it is over."""
        fired: Fired = Counter()
        began = time.time()
        self._order(rules)
        try:
            yield fired
        finally:
            self._order([])
            fired.update(self._fired(began))

    def _order(self, rules: Sequence[Rule]) -> None:
        answer = self._control.post("/rules", json=list(rules))
        assert answer.status_code == 200, answer.text
        assert len(answer.json()) == len(rules)

    def _fired(self, since: float) -> Fired:
        answer = self._control.get("/fired", params={"since": since, "limit": MOST})
        assert answer.status_code == 200, answer.text
        events = answer.json()
        return Counter((e["service"], e["operation"], _kind(e["action"])) for e in events)

    def end(self) -> None:
        """End the process."""
        self.process.end()
        self._control.close()


def _kind(action: str) -> str:
    """An action without how long it took."""
    return "latency" if action.startswith("latency") else action
