"""I39: the audit trail alone tells the state; every change of it left exactly one entry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sandbox_router.model import sandbox, snapshot
from sandbox_router.model.record import Outcome, Record
from sandbox_router.model.sandbox import Sandbox, State
from sandbox_router.model.snapshot import SnapshotState
from sandbox_router.store.log import LOG, Logged, logged
from sandbox_router.table import Item, Write
from tests.sim.table import FastTable

EDGES: Mapping[str, frozenset[str]] = {
    str(state): frozenset(map(str, after))
    for edges in (sandbox.EDGES, snapshot.EDGES)
    for state, after in edges.items()
}
RECORDS = ("SBX#", "SNAP#")
"""Where records are."""


def folded(trail: Sequence[Logged], state: str) -> tuple[str, dict[int, Outcome]]:
    """The state and the attempts' outcomes an audit trail ends with, from the state it begins in;
    each edge is one of ours.
    """
    outcomes = dict[int, Outcome]()
    assert [each.entry.event for each in trail].count("created") == 1, "not created once"
    for entry in (each.entry for each in trail):
        if entry.event == "state":
            assert entry.was == state, f"the trail jumps from {state} to {entry.was}"
            assert entry.state in EDGES[state], f"{state} -> {entry.state} is no edge"
            state = entry.state
        elif entry.attempt is not None:
            outcomes[entry.attempt] = Outcome(entry.event.removeprefix("attempt."))
    return state, outcomes


def check_trail(table: FastTable, box: Record) -> None:
    """The trail of a record, folded, is the record."""
    found = [logged(item) for item in table.partition(f"{LOG}{box.id}")]
    begins = State.STARTING if isinstance(box, Sandbox) else SnapshotState.CREATING
    state, outcomes = folded([each for each in found if each is not None], begins)
    assert state == box.state, f"the trail ends in {state}, the record is {box.state}"
    told = {attempt.n: attempt.outcome for attempt in box.attempts}
    silent = {n for n, outcome in told.items() if outcome is Outcome.INTENDED and n == 1}
    assert {**outcomes, **dict.fromkeys(silent, Outcome.INTENDED)} == told, "attempts differ"


def check_entries(writes: Sequence[Write], before: Sequence[Item | None]) -> None:
    """One write that took place: its entries lead from the record's old state to its new one."""
    pairs = list(zip(writes, before, strict=True))
    records = [
        (old, getattr(write, "set", None) or getattr(write, "item", {}))
        for write, old in pairs
        if write.key[1] == "A" and write.key[0].startswith(RECORDS)
    ]
    if not records:
        return
    ((old, new),) = records
    if old is None:
        return
    logs = [(write, was) for write, was in pairs if write.key[0].startswith(LOG)]
    if any(was is not None for _, was in logs):
        return  # the repeat of a write whose answer was lost
    state = old["state"]
    for write in sorted((w for w, _ in logs), key=lambda write: str(write.key[1])):
        item = getattr(write, "item", {})
        if item["event"] == "state":
            assert item["was"] == state, f"an entry from {item['was']}, and it is {state}"
            state = item["state"]
    assert state == new.get("state", old["state"]), f"saved without its entry: {new.get('state')}"
