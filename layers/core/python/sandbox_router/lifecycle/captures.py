"""A provider's captures, seen as what a provider makes: asked for, found, looked at, destroyed,
listed like instances.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..model.naming import capture_tags, snapshot_of
from ..model.snapshot import Snapshot
from ..ports import Capture, CaptureState, Instance, InstancePage, InstanceState, Order, Snapshots

_STATES: Mapping[CaptureState, InstanceState] = {
    "creating": "starting",
    "ready": "running",
    "failed": "failed",
}


@dataclass(frozen=True)
class Made(Instance):
    """A capture. size_bytes: where the provider tells it."""

    size_bytes: int | None = None


@dataclass(frozen=True)
class Captures:
    """The captures of an account. snapshot: the one that is asked for or looked for."""

    account: Snapshots
    deployment: str
    snapshot: Snapshot | None = None

    def create(self, order: Order, *, timeout: float) -> Instance:
        """Capture the order's reference, an instance, under its identity."""
        assert self.snapshot is not None
        contents = self.snapshot.contents
        return self._made(
            self.account.capture(order.reference, order.identity, contents, timeout=timeout)
        )

    def find(self, tags: Mapping[str, str]) -> Instance | None:
        """The snapshot's capture; its name says what tags would."""
        assert self.snapshot is not None
        assert self.snapshot.current is not None
        attempt = self.snapshot.current
        found = self.account.find_capture(attempt.reference, attempt.identity)
        return None if found is None else self._made(found)

    def get(self, instance_id: str) -> Instance | None:
        """What the provider says of a capture; None when it is gone."""
        found = self.account.get_capture(instance_id)
        return None if found is None else self._made(found)

    def destroy(self, instance_id: str) -> None:
        """Ask for a capture's end."""
        self.account.destroy_capture(instance_id)

    def instances(self, cursor: str | None) -> InstancePage:
        """One page of the account's captures; those whose name proves them ours have our tags."""
        page = self.account.captures(cursor)
        return InstancePage(tuple(map(self._made, page.captures)), page.cursor)

    def _made(self, capture: Capture) -> Made:
        snapshot_id = snapshot_of(self.deployment, capture.name or "")
        return Made(
            id=capture.id,
            state=_STATES[capture.state],
            tags={} if snapshot_id is None else capture_tags(self.deployment, snapshot_id),
            created_at=capture.created_at,
            size_bytes=capture.size_bytes,
        )
