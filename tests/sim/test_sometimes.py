"""Every named situation occurs: a simulation that never meets one proves nothing about it."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.sim import test_reconcile
from tests.sim.grid import FAMILIES, chosen, told
from tests.sim.lives import live
from tests.sim.sometimes import EVERY
from tests.sim.world import World

LIVES, SCENARIOS = 200, 50
DAMAGE = {"state": "unheard_of"}


def test_every_named_situation_occurs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same at every run, in one process: no chance, no order and no worker decides it."""
    seen: Counter[str] = Counter()
    for seed in range(LIVES):
        seen.update(+live(seed).told())
    for family, axes in FAMILIES.items():
        size = 1
        for axis in axes.values():
            size *= len(list(axis))
        for scenario in chosen(family, size // SCENARIOS | 1):
            seen.update(+told(scenario).told())
    seen.update(_stuck(monkeypatch))
    assert {name for name in EVERY if not seen[name]} == set()
    assert set(seen) <= EVERY, "a situation without a name on the list"


def _stuck(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    worlds: list[World] = []
    real = World.boot

    def boot(self: World) -> None:
        worlds.append(self)
        real(self)

    monkeypatch.setattr(World, "boot", boot)
    story = "test_an_unreadable_record_is_set_aside_keeps_its_instance_and_holds_up_nobody"
    getattr(test_reconcile, story)(DAMAGE)
    return +worlds[0].sometimes
