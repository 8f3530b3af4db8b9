"""The record of a snapshot: its states and edges as one table, what it is of and how it ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from .record import Record
from .size import Shape


class SnapshotState(StrEnum):
    """Where a snapshot is in its life."""

    CREATING = "creating"
    READY = "ready"
    DELETING = "deleting"
    DELETED = "deleted"
    FAILED = "failed"


_S = SnapshotState
EDGES: Mapping[SnapshotState, frozenset[SnapshotState]] = {
    _S.CREATING: frozenset({_S.READY, _S.FAILED, _S.DELETING}),
    _S.READY: frozenset({_S.DELETING, _S.FAILED}),
    _S.DELETING: frozenset({_S.DELETED}),
    _S.DELETED: frozenset(),
    _S.FAILED: frozenset(),
}


@dataclass(frozen=True, kw_only=True)
class Snapshot(Record):
    """A snapshot of ours: one attempt to capture an instance, in the pool the instance is in.

    instance_id: the instance; the attempt's own `instance_id` is the capture. contents: `memory` or
    `disk`. interrupts: what taking it does to the sandbox, None where nobody says. shape: that of
    the instance, and of what is made from it.
    """

    sandbox_id: str
    instance_id: str
    pool_id: str
    provider: str
    contents: str
    interrupts: str | None
    shape: Shape
    state: SnapshotState = SnapshotState.CREATING
    size_bytes: int | None = None

    @property
    def beginning(self) -> bool:
        """Is it not there yet, nor failed to be?"""
        return self.state is SnapshotState.CREATING

    @property
    def over(self) -> bool:
        """Is it in a terminal state?"""
        return not EDGES[self.state]

    @property
    def capture_id(self) -> str:
        """The provider's name of it."""
        return (self.attempts[0].instance_id if self.attempts else None) or ""
