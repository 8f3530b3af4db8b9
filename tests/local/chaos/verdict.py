"""What must be true after a storm, from what clients saw, what ran, and what is on record.

double: two sandboxes, or two instances, handed out for one key; or two instances of one sandbox
alive once everything has come to rest. A sandbox that never served and failed, which frees its key,
is none. leak: an instance alive at the end, of no record, or past its deadline by more than the
bound. Time in which not both processes were up does not count, and as much again is allowed for the
pause between two tries, which grows as long as the outage did.
lie: an answer that was not so: `204` to a destroy while the instance went on, a file that changed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from tests.local.chaos.clients import Event

BOUND_SECONDS = 5.0
RETRY_SECONDS = 10.0
"""A destroy that the vendor did not answer is tried again: after 1, 1, 2 and 4 s."""
UNDONE = frozenset({"failed"})
Down = Callable[[float, float], float]
Box = Mapping[str, Any]


def doubles(history: Iterable[Event], boxes: Mapping[str, Box]) -> list[str]:
    """Keys for which more than one thing was handed out."""
    sandboxes: dict[str, set[str]] = defaultdict(set)
    settled: dict[str, set[str]] = defaultdict(set)
    instances: dict[str, set[str]] = defaultdict(set)
    for event in history:
        if event.op == "create" and 200 <= event.status < 300 and event.key and event.sandbox:
            sandboxes[event.key].add(event.sandbox)
            if event.status == 201:
                settled[event.key].add(event.body)
        if 200 <= event.status < 300 and event.instance and event.sandbox:
            instances[event.sandbox].add(event.instance)
    found = [f"sandbox {name}: {sorted(ids)}" for name, ids in instances.items() if len(ids) > 1]
    found += [
        f"key {key}: {len(each)} settled answers" for key, each in settled.items() if len(each) > 1
    ]
    for key, ids in sandboxes.items():
        served = {one for one in ids if not _never_served(boxes.get(one))}
        if len(served) > 1:
            found.append(f"key {key}: {sorted(served)}")
    return found


def _never_served(box: Box | None) -> bool:
    return box is not None and box["state"] in UNDONE and box["started_at"] is None


def twins(alive: Iterable[Mapping[str, Any]]) -> list[str]:
    """Sandboxes with more than one instance now."""
    living: dict[str, list[str]] = defaultdict(list)
    for one in alive:
        living[one["metadata"]["constal-sandbox-id"]].append(one["id"])
    return [f"{name}: {ids}" for name, ids in living.items() if len(ids) > 1]


def lateness(
    ledger: Iterable[Mapping[str, Any]], boxes: Mapping[str, Box], down: Down, now: float
) -> tuple[list[float], list[str]]:
    """By how much each instance that saw its deadline outlived it, outages taken off; leaks."""
    late, leaks = [], []
    for one in ledger:
        gone = now if one["gone_ms"] is None else one["gone_ms"] / 1000
        name = one["metadata"].get("constal-sandbox-id", "")
        box = boxes.get(name)
        if box is None:
            leaks.append(f"{one['id']}: no record {name}")
            continue
        due = max(seconds(box["expires_at"]), one["created_ms"] / 1000)
        if one["gone_ms"] is None:
            leaks.append(f"{one['id']} of {name}: alive, {box['state']}")
        if gone < seconds(box["expires_at"]) - 0.05:
            continue
        lost = down(due, gone)
        late.append(max(0.0, gone - due - lost))
        if late[-1] > BOUND_SECONDS + RETRY_SECONDS + lost:
            leaks.append(f"{one['id']} of {name}: {late[-1]:.1f} s late, {lost:.1f} s of it down")
    return late, leaks


def lies(
    history: Iterable[Event], ledger: Iterable[Mapping[str, Any]], boxes: Mapping[str, Box]
) -> list[str]:
    """Answers that were not so. What is born later, of a late create, is a debt and no lie."""
    found: list[str] = []
    confirmed: dict[str, float] = {}
    for event in history:
        if event.lie is not None:
            found.append(event.lie)
        if event.op == "destroy" and event.status == 204 and event.sandbox:
            confirmed.setdefault(event.sandbox, event.ended)
    for one in ledger:
        name = one["metadata"].get("constal-sandbox-id", "")
        said = confirmed.get(name)
        if said is None or name not in boxes or boxes[name]["state"] != "destroyed":
            continue
        born, gone = one["created_ms"] / 1000, (one["gone_ms"] or float("inf")) / 1000
        if born < said and gone > said + 0.05:
            found.append(f"{one['id']} was alive after its destroy was confirmed")
    return found


def seconds(text: str) -> float:
    """A moment of the API."""
    return datetime.fromisoformat(text).timestamp()
