"""Each net alone: how long after its deadline an instance lives, or a capture is kept. `make sim`
prints it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import median

from tests.sim.checks import ended_at
from tests.sim.scenario import BOUNDS_MS, LEASE_MS, WINDOW_MS
from tests.sim.world import LATE_MS, World

MINUTE_MS = 60_000


@dataclass(frozen=True)
class Net:
    """A net with all others off. bound_ms: I9, what it promises alone. crashes: does it also find
    what a dead process left behind? ttls: the lifetimes it is for, in seconds.
    """

    nets: frozenset[str]
    bound_ms: int
    crashes: bool = True
    ttls: tuple[int, ...] = (30, 120, 200, 900)
    limits: bool = False


NETS: Mapping[str, Net] = {
    "queue": Net(frozenset({"queue"}), LATE_MS, crashes=False, ttls=(30, 120, 170)),
    "sweep": Net(frozenset({"sweep"}), 2 * MINUTE_MS),
    "guard": Net(frozenset({"queue", "guard"}), BOUNDS_MS["guard"], ttls=(200, 900)),
    "reconcile": Net(frozenset({"reconcile"}), 6 * MINUTE_MS),
    "provider": Net(frozenset(), MINUTE_MS, limits=True),
}
"""A deadline further than three minutes is the sweep's to send, so the queue alone has near ones.
The guard's bound is that of the table's expiry service, as late as it is here; it needs a queue
for what it cannot end at once."""
PHASES_S = (0, 13, 29, 59, 61, 151, 299)
"""When in the nets' own minutes a life begins."""
FAULTS = ("ok", "lost", "slow")
CRASHES = (0, 6, 9)


def lateness(net: Net) -> Iterator[int]:
    """Milliseconds from its deadline to its end, of every instance and capture of every life. No
    vendor ends a capture by itself.
    """
    crashes = CRASHES if net.crashes else (0,)
    for phase, ttl, fault, crash in itertools.product(PHASES_S, net.ttls, FAULTS, crashes):
        world = World(limits=net.limits, nets=net.nets)
        world.run_until(world.clock.now() + phase * 1_000)
        world.providers["alpha"].script("create", fault)
        world.crash_at = crash and world.ticks + crash
        world.create(ttl=ttl)
        (box,) = world.boxes()
        if net.nets and not crash:
            world.take_snapshot(box, ttl=ttl)
        last = max(record.expires_at for record in world.records())
        world.run_until(last + net.bound_ms + WINDOW_MS + LEASE_MS)
        for vendor in world.providers.values():
            for instance in vendor.boxes.values():
                ended = ended_at(instance)
                assert ended is not None, f"never ended: {phase} {ttl} {fault} {crash}"
                yield ended - box.expires_at
            for shot in vendor.shots.values():
                assert shot.dead_at is not None, f"kept for ever: {phase} {ttl} {fault}"
                yield shot.dead_at - world.shots()[0].expires_at


def main() -> None:
    """Print a line a net."""
    print("net            ended  median s  worst s  bound s")
    for name, net in NETS.items():
        found = [max(late, 0) / 1000 for late in lateness(net)]
        worst, bound = max(found), net.bound_ms / 1000
        print(f"{name:10} {len(found):9} {median(found):9.1f} {worst:8.1f} {bound:8.0f}")


if __name__ == "__main__":
    main()
