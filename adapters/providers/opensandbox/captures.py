"""OpenSandbox's snapshots as captures of an instance's disk.

Facts: specs/sandbox-lifecycle.yml of github.com/opensandbox-group/OpenSandbox at 3bb6fad and
opensandbox-server 1.1.1 (services/snapshot_service.py, services/docker/snapshot_runtime.py). Names
need not be unique, and a second one under a name is a second one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from sandbox_router.model.failure import Gone, PoolUnsupported, ProtocolBroken
from sandbox_router.ports import Capture, CapturePage

from ..answer import Answer
from . import declare, wire

PAGE = 100
PAGES = 20


class Captures:
    """The server's captures. ask: a control call; seconds: what a look-up may take in all."""

    def __init__(self, ask: Callable[..., Answer], seconds: float) -> None:
        self._ask, self._seconds = ask, seconds

    def take(self, instance_id: str, name: str, contents: str, timeout: float) -> Capture:
        """Accepted, and made afterwards."""
        if contents != "disk":
            raise PoolUnsupported
        answer = self._ask(
            "POST",
            f"/sandboxes/{declare.safe_id(instance_id)}/snapshots",
            wire.document({"name": name}),
            expect=(202,),
            verdicts=wire.CAPTURES,
            timeout=timeout,
        )
        return wire.captured(answer.object())

    def find(self, instance_id: str, name: str) -> Capture | None:
        """The oldest match, so that looking up and destroying in turn ends with none left."""
        matches: list[Capture] = []
        over = time.monotonic() + self._seconds
        for number in range(1, PAGES + 1):
            query = f"sandboxId={declare.safe_id(instance_id)}"
            found, more = self._page(query, number, over - time.monotonic())
            # The filter is a help; only what the snapshot says itself counts.
            matches += [one for one, source in found if (one.name, source) == (name, instance_id)]
            if not more:
                return min(matches, key=lambda one: (one.created_at or 0, one.id), default=None)
        raise ProtocolBroken

    def get(self, capture_id: str) -> Capture | None:
        """As it is now."""
        path = f"/snapshots/{declare.safe_id(capture_id)}"
        try:
            found = wire.captured(self._ask("GET", path, verdicts=wire.CAPTURE_CALLS).object())
        except Gone:
            return None
        if found.id != capture_id:
            raise ProtocolBroken
        return found

    def destroy(self, capture_id: str) -> None:
        """Refused while it is being made, and while something made of it is there."""
        path = f"/snapshots/{declare.safe_id(capture_id)}"
        with suppress(Gone):
            self._ask("DELETE", path, expect=(204,), verdicts=wire.CAPTURE_CALLS)

    def page(self, cursor: str | None) -> CapturePage:
        """One page of all there are."""
        number = int(cursor or "1")
        found, more = self._page("", number)
        return CapturePage(tuple(one for one, _ in found), str(number + 1) if more else None)

    def _page(
        self, query: str, number: int, seconds: float | None = None
    ) -> tuple[tuple[tuple[Capture, Any], ...], bool]:
        asked = "&".join(filter(None, [query, f"page={number}", f"pageSize={PAGE}"]))
        verdicts = wire.CAPTURE_CALLS
        answer = self._ask("GET", "/snapshots", query=asked, verdicts=verdicts, timeout=seconds)
        return wire.page(answer.object(), number, wire.taken)
