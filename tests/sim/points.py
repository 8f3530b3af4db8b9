"""Every port call of a life: the same life again, and each time the process dies one call later."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from tests.sim.grid import chosen, told
from tests.sim.scenario import Scenario

LIVES: Mapping[str, Mapping[str, Any]] = {
    "creates": {"retry": None, "destroy": None, "env": False},
    "destroys": {"alpha": "ok", "destroy": 0, "lag_ms": 0},
    "power": {"destroy": None, "nets": "writers", "boots_ms": 0},
    "captures": {"again": None, "nets": "writers"},
    "capture ends": {"shot": "ok", "nets": "writers", "lag_ms": 0},
    "vendors": {"alpha": "ok", "destroy": 0, "power": "", "lag_ms": 0},
}
"""Families whose lives are taken, and which of them: those that differ in what vendors do."""


def lives(family: str) -> list[Scenario]:
    """Lives of a family in which no process dies."""
    return list(chosen(family, crash=0, **LIVES[family]))


def deaths(life: Scenario) -> Iterator[Scenario]:
    """The life, and for each of its port calls the same one with a process that dies there."""
    for crash in range(told(life).ticks + 1):
        yield replace(life, crash=crash)
