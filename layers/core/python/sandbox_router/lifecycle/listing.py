"""Lists: which of a tenant's records, page by page, with cursors that are ours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeVar

from ..model.failure import Invalid
from ..model.record import Record
from ..model.sandbox import Sandbox, State
from ..model.secret import Secret
from ..model.token import Foreign, Tokens
from ..ports import Clock
from ..store import Store, shelf

R = TypeVar("R", bound=Record)
R_contra = TypeVar("R_contra", bound=Record, contravariant=True)
CURSOR_MS = 86_400_000
PAGES = 5
"""Table pages one list call may read before it answers with a short page."""


class Shown(Protocol[R_contra]):
    """Which records a list shows."""

    @property
    def created_after(self) -> int | None:
        """Only those created after this moment."""
        ...

    def take(self, box: R_contra, /) -> bool:
        """Does the list show this record?"""
        ...


@dataclass(frozen=True)
class Filters:
    """Which sandboxes a list shows; `states` None leaves out only the destroyed."""

    states: frozenset[State] | None = None
    labels: tuple[tuple[str, str], ...] = ()
    provider: str | None = None
    created_after: int | None = None

    def take(self, box: Sandbox) -> bool:
        """Does the list show this record?"""
        if self.states is None:
            shown = box.state is not State.DESTROYED
        else:
            shown = box.state in self.states
        at = None if box.server is None else box.server.provider
        there = self.provider is None or self.provider == at
        labelled = all(box.labels.get(name) == value for name, value in self.labels)
        return shown and there and labelled


class Listing:
    """Pages of a tenant's records."""

    def __init__(self, store: Store, clock: Clock, pepper: Secret) -> None:
        self._store, self._clock, self._tokens = store, clock, Tokens("cursor", pepper)

    def page(
        self, kind: type[R], tenant: str, filters: Shown[R], *, limit: int, cursor: str | None
    ) -> tuple[list[R], str | None]:
        """One page, newest first, and the cursor of the next; raises Invalid on a bad cursor."""
        found: list[R] = []
        at = None if cursor is None else self._opened(shelf(kind, tenant), cursor)
        for _ in range(PAGES):
            room = limit - len(found)
            boxes, at = self._store.of_tenant(kind, tenant, filters.created_after, room, at)
            found.extend(box for box in boxes if filters.take(box))
            if at is None or len(found) >= limit:
                break
        return found, None if at is None else self._sealed(shelf(kind, tenant), at)

    def _sealed(self, whose: str, cursor: str) -> str:
        """A cursor bound to its list and day."""
        return self._tokens.made(whose, [self._clock.now(), cursor])

    def _opened(self, whose: str, cursor: str) -> str:
        try:
            at, inner = self._tokens.opened(whose, cursor)
        except Foreign:
            raise Invalid(fields=(("cursor", "is not one of ours"),)) from None
        if at < self._clock.now() - CURSOR_MS:
            raise Invalid(fields=(("cursor", "is older than 24 hours"),))
        return str(inner)
