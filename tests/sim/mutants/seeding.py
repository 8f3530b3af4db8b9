"""What a seeded fault is, and how one enters the list."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.sim.grid import chosen, told

Patch = pytest.MonkeyPatch
Seed = Callable[[Patch], None]
Hunt = Callable[[], None]


@dataclass(frozen=True)
class Mutant:
    """One fault of ours. hunt: fails when the fault is there, and only then."""

    name: str
    breaks: str
    seed: Seed
    hunt: Hunt


MUTANTS: list[Mutant] = []


def grid(family: str, stride: int = 97, **wanted: Any) -> Hunt:
    """Scenarios of the grid that have these choices."""

    def hunt() -> None:
        for one in chosen(family, stride, **wanted):
            told(one)

    hunt.__name__ = " ".join([family, *(f"{k}={v!r}" for k, v in wanted.items())])
    return hunt


def finds(hunt: Hunt) -> bool:
    """Does it find that a promise is broken? Any other failure is the seeded fault's own: raised.

    What a failure was before it was told of is its cause.
    """
    try:
        hunt()
    except Exception as failed:
        cause: BaseException = failed
        while cause.__cause__ is not None:
            cause = cause.__cause__
        if not isinstance(cause, AssertionError):
            raise
        return True
    return False


def mutant(breaks: str, hunt: Hunt) -> Callable[[Seed], Seed]:
    """Enter a seeded fault in the list."""

    def entered(seed: Seed) -> Seed:
        MUTANTS.append(Mutant(seed.__name__.strip("_").replace("_", " "), breaks, seed, hunt))
        return seed

    return entered
