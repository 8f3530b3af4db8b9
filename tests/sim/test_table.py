"""The simulation's table is the table in memory, only faster: the same lives, the same items."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox_router.table import Item, Key, Write
from tests.fakes.table import MemoryTable
from tests.sim import world
from tests.sim.lives import live
from tests.sim.table import FastTable


class Both(FastTable):
    """Every write goes to both tables; every answer is the same."""

    def __init__(self) -> None:
        super().__init__()
        self.slow = MemoryTable()

    def write(self, *writes: Write) -> None:
        failures: list[object] = []
        for table in (self.slow.write, super().write):
            try:
                table(*writes)
                failures.append(None)
            except Exception as failed:
                failures.append((type(failed), getattr(failed, "old", None)))
        assert failures[0] == failures[1]
        if failures[0] is not None:
            super().write(*writes)

    def replace(self, key: Key, item: Item | None) -> None:
        super().replace(key, item)
        if self.slow.get(key) != item:  # not by a write: an expiry, a loss
            self.slow.replace(key, item)

    def query(self, *args: Any, **named: Any) -> Any:
        found = super().query(*args, **named)
        assert found == self.slow.query(*args, **named)
        return found


@pytest.mark.parametrize("seed", range(8))
def test_a_life_leaves_the_same_items(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world, "MemoryTable", Both)
    lived = live(seed)
    assert isinstance(lived.memory, Both)
    assert lived.memory.items() == lived.memory.slow.items()
    assert len(lived.memory.items()) > 10
