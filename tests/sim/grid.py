"""The grid: families of scenarios, each the product of its axes, in a fixed order."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from tests.sim.blame import telling
from tests.sim.capturing import CAPTURE, CAPTURE_FAULTS, ENDS, Capturing
from tests.sim.scenario import NETS, QUIRKS, RIVALS_OF, Scenario
from tests.sim.world import World

CRASHES = tuple(range(17))
"""0: no crash; n: at the n-th port call of the create and everything after it. Those of the power
family reach to the end of a create with failover; `points` takes every port call of a life."""
ALPHA = (
    *("ok", "lost", "cut", "late", "slow", "capacity", "forbidden", "rate_limited", "unauthorized"),
    *("ok capacity", "lost capacity", "lost conflict", "region", "unsupported"),
)
"""What the first pool's creates meet, one after the other."""
BETA = ("ok", "lost", "capacity", "forbidden")
RETRIES = (None, 0, 31)
"""The client repeats its create: never, at once, when the dead worker's lease is over (seconds)."""
DESTROYS = (None, 0, 40)
BOTH = (True, False)
LAGS = (0, 5_000)
DESTROY_FAULTS = (
    *("", "destroy:cut", "destroy:lost destroy:conflict", "destroy:kept destroy:kept"),
    *("destroy:unauthorized", "destroy:rate_limited destroy:cut"),
)
GET_FAULTS = ("", "get:cut", "get:cut get:cut get:outage")
VENDOR_FAULTS = (
    " ".join(["get:cut"] * 12),
    *("", "destroy:ending", "destroy:ending destroy:kept", "get:hidden", "get:hidden find:absent"),
)
LIST_FAULTS = ("", "instances:skipped", "instances:absent", "instances:cut")
FIND_FAULTS = ("", "find:cut", "find:absent find:outage")
POWER = (
    "pause",
    "pause resume",
    "extend",
    "look",
    "pause extend resume",
    "shorten",
    "relabel",
    "stop look resume",
    "pause start look",
    "lose look look",
)
POWER_FAULTS = (
    *("", "pause:cut", "pause:lost", "pause:capacity", "pause:gone", "resume:lost", "resume:gone"),
    *("extend:cut", "extend:lost", "extend:gone", "get:absent", "get:cut get:absent"),
)

Axes = dict[str, tuple[Any, ...]]
FAMILIES: dict[str, Axes] = {
    "creates": {
        "crash": CRASHES,
        "alpha": ALPHA,
        "beta": BETA,
        "retry": RETRIES,
        "destroy": (None, 40),
        "idempotent": BOTH,
        "lag_ms": LAGS,
        "env": BOTH,
    },
    "nets": {
        "crash": CRASHES,
        "alpha": ALPHA,
        "nets": tuple(NETS),
        "retry": (None, 31),
        "idempotent": BOTH,
        "lag_ms": LAGS,
    },
    "destroys": {
        "crash": (0, *range(7, 17)),
        "alpha": ("ok", "lost", "late"),
        "faults": tuple(
            " ".join(filter(None, parts))
            for parts in itertools.product(DESTROY_FAULTS, GET_FAULTS, FIND_FAULTS)
        ),
        "destroy": DESTROYS,
        "idempotent": BOTH,
        "lag_ms": LAGS,
    },
    "rivals": {
        "rival": RIVALS_OF,
        "rival_at": CRASHES[1:],
        "alpha": ALPHA[:9],
        "crash": (0, 8),
        "retry": (None, 31),
        "idempotent": BOTH,
        "nets": ("writers", "sweep"),
        "wait": (20.0, 0.0),
        "ttl": (600,),
    },
    "twice": {
        "crash": CRASHES[1:],
        "crash_next": CRASHES[1:],
        "alpha": ALPHA[:5],
        "retry": (0, 31),
        "destroy": (None, 0),
        "idempotent": BOTH,
    },
    "vendors": {
        "crash": (0, *range(6, 22)),
        "quirk": tuple(QUIRKS),
        "alpha": ("ok", "lost", "twice", "brief", "lost twice"),
        "faults": VENDOR_FAULTS,
        "nets": ("all",),
        "destroy": (None, 0),
        "power": ("", "look look"),
        "lag_ms": LAGS,
        "idempotent": BOTH,
    },
    "captures": {
        "crash": (0, *range(9, 26)),
        "shot": CAPTURE,
        "ends": ENDS,
        "again": (None, 31),
        "nets": ("writers", "sweep"),
        "idempotent": BOTH,
        "shots_ms": (0, 2_500),
    },
    "capture ends": {
        "crash": (0, *range(9, 26)),
        "shot": CAPTURE[:7],
        "faults": CAPTURE_FAULTS,
        "ends": ENDS,
        "nets": ("writers", "all"),
        "lag_ms": LAGS,
    },
    "capture nets": {
        "crash": (0, *range(9, 26)),
        "shot": CAPTURE,
        "faults": CAPTURE_FAULTS[1:],
        "nets": ("guard", "reconcile"),
        "idempotent": BOTH,
    },
    "lists": {
        "crash": CRASHES,
        "quirk": ("", "ghosts", "early", "pages"),
        "alpha": ("ok", "lost", "late", "brief"),
        "faults": LIST_FAULTS,
        "nets": ("reconcile",),
        "lag_ms": LAGS,
        "idempotent": BOTH,
    },
    "power": {
        "power": POWER,
        "crash": (0, *range(8, 24)),
        "faults": POWER_FAULTS,
        "destroy": (None, 0),
        "nets": ("writers", "sweep"),
        "boots_ms": (0, 1_800),
    },
}


KINDS: dict[str, type[Scenario]] = dict.fromkeys(
    ("captures", "capture ends", "capture nets"), Capturing
)


def everything(family: str) -> Iterator[Scenario]:
    """All of a family."""
    return chosen(family)


def chosen(family: str, stride: int = 1, begin: int = 0, **wanted: Any) -> Iterator[Scenario]:
    """Every so-manieth of a family, from one on, of those that have these choices."""
    axes = FAMILIES[family]
    assert all(choice in axes[name] for name, choice in wanted.items()), wanted
    some = [(wanted[name],) if name in wanted else axis for name, axis in axes.items()]
    kind = KINDS.get(family, Scenario)
    for choice in itertools.islice(itertools.product(*some), begin, None, stride):
        yield kind(**dict(zip(axes, choice, strict=True)))


def told(scenario: Scenario) -> World:
    """Run it; a failure says which it was and what clients saw last."""
    with telling(scenario):
        return scenario.run()
