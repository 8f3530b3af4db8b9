"""`make mutants`: which seeded faults are found, by their own selection and by the wide nets."""

from __future__ import annotations

import math
import signal
import sys
from collections.abc import Callable

import pytest

from tests.sim.grid import FAMILIES, chosen, told
from tests.sim.lives import live
from tests.sim.mutants import MUTANTS, Mutant
from tests.sim.mutants.seeding import finds

LIVES, SCENARIOS, SECONDS = 40, 120, 60


def _lives() -> None:
    for seed in range(LIVES):
        live(seed)


def _family(name: str) -> Callable[[], None]:
    stride = math.prod(map(len, FAMILIES[name].values())) // SCENARIOS | 1

    def some() -> None:
        for scenario in chosen(name, stride):
            told(scenario)

    return some


FINDERS = {"lives": _lives, **{name: _family(name) for name in FAMILIES}}


def found(mutant: Mutant, finder: Callable[[], None]) -> bool:
    """Does the finder see a promise broken, or come to no end, with the fault in place?"""
    with pytest.MonkeyPatch.context() as patch:
        mutant.seed(patch)
        signal.alarm(SECONDS)
        try:
            return finds(finder)
        except Exception:
            return False
        finally:
            signal.alarm(0)


def _hangs(*_: object) -> None:
    raise AssertionError("no end")


def main() -> int:
    """Print a line a mutant; the exit status says whether all were killed."""
    signal.signal(signal.SIGALRM, _hangs)
    killed = 0
    for mutant in MUTANTS:
        own = found(mutant, mutant.hunt)
        also = [name for name, finder in FINDERS.items() if found(mutant, finder)]
        killed += own
        verdict = f"killed by {mutant.hunt.__name__}" if own else "ALIVE"
        more = f"; also by {', '.join(also)}" if also else ""
        print(f"{mutant.breaks:8} {mutant.name}: {verdict}{more}", flush=True)
    print(f"{killed} of {len(MUTANTS)} seeded faults are found")
    return 0 if killed == len(MUTANTS) else 1


if __name__ == "__main__":
    sys.exit(main())
