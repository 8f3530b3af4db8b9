"""One run: load, storm, calm, rest, verdict."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.local.chaos import promises, verdict
from tests.local.chaos.clients import Client, History
from tests.local.chaos.plant import Plant
from tests.local.chaos.storm import Storm

SETTLE_SECONDS = 30.0
"""An attempt nobody can settle is given up after 20 s; looks are at most 10 s apart till then."""
REST_SECONDS = verdict.BOUND_SECONDS + verdict.RETRY_SECONDS
TERMINAL = frozenset({"destroyed", "failed", "lost"})
STATES = "starting,running,pausing,paused,resuming,destroying,destroyed,failed,lost"


@dataclass(frozen=True)
class Setting:
    """kills: when it is enough. ttls: the lifetimes asked for, in seconds. pace: of the storm's
    pauses; less is faster.
    """

    kills: int
    seed: int
    clients: int = 10
    ttls: tuple[int, int] = (30, 60)
    pace: float = 1.0


@dataclass
class Outcome:
    """What it came to."""

    setting: Setting
    kills: int = 0
    stops: int = 0
    seconds: float = 0.0
    starts: list[float] = field(default_factory=list)
    refused_starts: list[str] = field(default_factory=list)
    answers: dict[str, Counter[str]] = field(default_factory=dict)
    internal: list[str] = field(default_factory=list)
    states: Counter[str] = field(default_factory=Counter)
    instances: int = 0
    lost: int = 0
    late: list[float] = field(default_factory=list)
    doubles: list[str] = field(default_factory=list)
    leaks: list[str] = field(default_factory=list)
    lies: list[str] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        """Did everything hold?"""
        return not (self.doubles or self.leaks or self.lies or self.unfinished or self.broken)

    def __str__(self) -> str:
        late = sorted(self.late)
        p99 = late[min(len(late) - 1, int(len(late) * 0.99))] if late else 0.0
        starts = sorted(self.starts)
        lines = [
            f"seed {self.setting.seed}: {self.kills} kills, {self.stops} stops in "
            f"{self.seconds:.0f} s, {self.setting.clients} clients",
            f"router starts: {len(starts)}, median {starts[len(starts) // 2]:.1f} s, "
            f"max {starts[-1]:.1f} s, refused {len(self.refused_starts)}",
            *(f"{op:8} {_counted(seen)}" for op, seen in sorted(self.answers.items())),
            f"sandboxes: {_counted(self.states)}; instances {self.instances}, "
            f"of which {self.lost} went with their host",
            f"lateness of {len(late)} that saw their deadline: "
            f"max {late[-1] if late else 0:.2f} s, p99 {p99:.2f} s",
            f"doubles {len(self.doubles)}, leaks {len(self.leaks)}, lies {len(self.lies)}, "
            f"unfinished {len(self.unfinished)}, broken promises {len(self.broken)}, "
            f"internal errors {len(self.internal)}",
        ]
        wrong = [*self.doubles, *self.leaks, *self.lies, *self.unfinished, *self.broken]
        wrong += [*self.internal, *self.refused_starts]
        return "\n".join([*lines, *(f"  ! {what}" for what in wrong)])


def run(setting: Setting, root: Path, say: Callable[[str], None] = print) -> Outcome:
    """Play it in a folder of its own, and leave nothing running."""
    plant, history = Plant(root, setting.seed), History()
    try:
        plant.start_router()
        began, over = time.monotonic(), threading.Event()
        threads = [
            threading.Thread(target=client.work, args=(over,), daemon=True)
            for client in _clients(setting, plant, history)
        ]
        storm = Storm(plant, setting.kills, setting.seed, setting.pace)
        try:
            for thread in threads:
                thread.start()
            storm.blow(say)
        finally:
            plant.calm()
            over.set()
        say("calm")
        for thread in threads:
            thread.join(60)
        outcome = Outcome(setting, storm.kills, storm.stops, time.monotonic() - began)
        _rest(plant, outcome)
        _judge(plant, history, outcome)
        return outcome
    finally:
        plant.end()


def _clients(setting: Setting, plant: Plant, history: History) -> list[Client]:
    return [
        Client(plant.url, plant.key, history, f"{setting.seed}-{n}", setting.ttls)
        for n in range(setting.clients)
    ]


def _rest(plant: Plant, outcome: Outcome) -> None:
    """Until nothing should live any more; twins are looked for while something still does."""
    calm = time.time()
    boxes = listed(plant)
    end = max((verdict.seconds(box["expires_at"]) for box in boxes.values()), default=calm)
    time.sleep(min(SETTLE_SECONDS, max(0.0, end - calm - 3)))
    outcome.doubles += verdict.twins(plant.look())
    while time.time() < end + REST_SECONDS:
        if time.time() > end and not plant.look() and not _unfinished(listed(plant)):
            return
        time.sleep(0.5)


def _judge(plant: Plant, history: History, outcome: Outcome) -> None:
    alive = plant.look()
    boxes, ledger = listed(plant), list(plant.ledger.values())
    outcome.doubles += verdict.doubles(history, boxes)
    outcome.late, outcome.leaks = verdict.lateness(ledger, boxes, plant.down, time.time())
    outcome.lies = verdict.lies(history, ledger, boxes)
    outcome.unfinished = _unfinished(boxes)
    outcome.broken = promises.broken(history, boxes, alive)
    outcome.states = Counter(str(box["state"]) for box in boxes.values())
    outcome.instances, outcome.lost = len(ledger), len(plant.died_with_host)
    outcome.starts, outcome.refused_starts = plant.starts, plant.refusals
    for event in history:
        said = f"{event.status or 'none'}" + (f" {event.code}" if event.code else "")
        outcome.answers.setdefault(event.op, Counter())[said] += 1
        if event.status == 500:
            outcome.internal.append(f"{event.op}: {event.body}")


def _unfinished(boxes: dict[str, dict[str, Any]]) -> list[str]:
    return [f"{n} is {box['state']}" for n, box in boxes.items() if box["state"] not in TERMINAL]


def listed(plant: Plant) -> dict[str, dict[str, Any]]:
    """Every sandbox on record."""
    found: dict[str, dict[str, Any]] = {}
    cursor: str | None = None
    headers = {"Authorization": f"Bearer {plant.key}"}
    with httpx.Client(base_url=plant.url, headers=headers, timeout=30, trust_env=False) as client:
        while True:
            query = {"state": STATES, "limit": "200"} | ({"cursor": cursor} if cursor else {})
            page = client.get("/v1/sandboxes", params=query).raise_for_status().json()
            found.update({box["id"]: box for box in page["data"]})
            cursor = page["next_cursor"]
            if cursor is None:
                return found


def _counted(seen: Counter[str]) -> str:
    return ", ".join(f"{what}: {times}" for what, times in seen.most_common())
