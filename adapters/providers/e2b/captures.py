"""E2B's snapshots as captures: templates of the account's own, made of a running sandbox.

Facts: packages/api/internal/handlers (snapshot_template_create.go, snapshot_template_list.go,
template_delete.go) of github.com/e2b-dev/infra at 54693ff, and the official Python SDK e2b 2.63.0.
A second one under a name takes the first one's place, so it is no repeat: it is another moment.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from urllib.parse import quote

from sandbox_router.model.failure import Conflicted, Gone, ProtocolBroken
from sandbox_router.ports import Capture, CapturePage

from ..answer import Answer
from . import declare, wire

PAGE = 100
PAGES = 20
LAST_SECONDS = 1.0
"""For a look after a call that took all the time there was."""


class Captures:
    """The account's captures. ask: a control call; seconds: what a look-up may take in all."""

    def __init__(self, ask: Callable[..., Answer], seconds: float) -> None:
        self._ask, self._seconds = ask, seconds

    def take(self, instance_id: str, name: str, contents: str, timeout: float) -> Capture:
        """Capture what runs; ready when it answers. Memory includes the disk."""
        over = time.monotonic() + timeout
        path = f"/sandboxes/{declare.instance_id(instance_id)}"
        kind = {} if contents == "memory" else {"memory": False}
        try:
            answer = self._ask(
                "POST",
                f"{path}/snapshots",
                wire.document({"name": name, **kind}),
                expect=(201,),
                verdicts=wire.CAPTURES,
                timeout=timeout,
            )
            return wire.captured(answer.object())
        except Gone:
            pass
        self._ask("GET", path, timeout=max(LAST_SECONDS, over - time.monotonic()))
        raise Conflicted  # it is there: a paused one answers 404 here too

    def find(self, instance_id: str, name: str) -> Capture | None:
        """Look through what was taken of the instance: a look by name may be minutes behind."""
        query = f"sandboxID={declare.instance_id(instance_id)}"
        cursor: str | None = None
        over = time.monotonic() + self._seconds
        for _ in range(PAGES):
            page = self._page(query, cursor, over - time.monotonic())
            if found := [one for one in page.captures if one.name == name]:
                return found[0]
            if (cursor := page.cursor) is None:
                return None
        raise ProtocolBroken

    def get(self, capture_id: str) -> Capture | None:
        """E2B has no such call; its list takes an id where it takes a name."""
        query = f"name={quote(declare.capture_id(capture_id), safe='')}"
        found = [one for one in self._page(query, None).captures if one.id == capture_id]
        return found[0] if found else None

    def destroy(self, capture_id: str) -> None:
        """A snapshot ends like the template it is; refused while something made of it lives."""
        path = f"/templates/{quote(declare.capture_id(capture_id), safe='')}"
        self._ask("DELETE", path, expect=(204, 404), verdicts=wire.CAPTURES)

    def page(self, cursor: str | None) -> CapturePage:
        """One page of all there are."""
        return self._page("", cursor)

    def _page(self, query: str, cursor: str | None, seconds: float | None = None) -> CapturePage:
        parts = [query, f"limit={PAGE}"]
        if cursor is not None:
            parts.append(f"nextToken={quote(cursor, safe='')}")
        path = f"/snapshots?{'&'.join(filter(None, parts))}"
        answer = self._ask("GET", path, verdicts=wire.LISTS, timeout=seconds)
        entries = tuple(wire.captured(entry) for entry in wire.entries(answer))
        return CapturePage(entries, wire.following(answer, cursor))
