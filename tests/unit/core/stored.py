"""A store on a table in memory, its faults on script, and what happens in between tries."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from sandbox_router.model.sandbox import Sandbox
from sandbox_router.store import Change, Entry, Result, Store
from sandbox_router.table import Item, Key
from tests.fakes.clock import FakeClock
from tests.fakes.ids import FakeIds
from tests.fakes.table import MemoryTable
from tests.fakes.weak import Weak
from tests.unit.core.build import T, attempt, box

CREATED = Entry(T, "created", "starting")


class Eventful(FakeClock):
    """A clock; whoever sleeps on it (the store between two tries) lets the next thing happen."""

    def __init__(self) -> None:
        super().__init__(T)
        self.meanwhile: deque[Callable[[], Any]] = deque()

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        if self.meanwhile:
            self.meanwhile.popleft()()


@dataclass
class Shelf:
    """Two stores over one table: `store` meets the scripted faults, `other` never does."""

    clock: Eventful = field(default_factory=Eventful)
    memory: MemoryTable = field(default_factory=MemoryTable)

    def __post_init__(self) -> None:
        self.weak = Weak(self.memory, random.Random(0), self.clock)
        self.store = Store(self.weak, self.clock, FakeIds("store"))
        self.other = Store(self.memory, self.clock, FakeIds("other"))

    def inserted(self, **changes: Any) -> Sandbox:
        """A record as a create stores it: claimed, with its first intent and its key."""
        keys = {"key_hash": "k", "request_hash": "h", "epoch": 1, "nonce": "n", "due_at": T}
        made = replace(box(attempt(epoch=1)), **{**keys, **changes})
        assert self.other.insert(made, CREATED) is None
        return made

    def claimed(self, **changes: Any) -> Sandbox:
        """A stored record under a claim of `other` for 30 s."""
        held = self.other.claim(self.inserted(**changes), 30_000)
        assert held is not None
        return held

    def saved(self, before: Sandbox, **changes: Any) -> Sandbox:
        """One save of these changes to a claimed record."""
        return self.store.save(Change(before, replace(before, **changes)))

    def item(self, pk: str, sk: str = "A") -> dict[str, Any]:
        """One item as it is stored, or an empty one."""
        key: Key = (pk, sk)
        return dict(self.memory.get(key) or {})

    def log(self) -> list[Item]:
        """Audit entries, in order."""
        return list(self.memory.query(None, "LOG#sbx-a").items)

    def due(self, until: int = 2**62) -> list[str]:
        """Ids in the due index."""
        return [id_ for n in range(16) for id_, _, _ in self.other.due(n, until, None)[0]]


def result(status: int = 201) -> Result:
    """A create's first answer."""
    return Result(status, "{}")
