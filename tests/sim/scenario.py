"""One scenario: where processes die, what vendors, clients and rivals do, and which nets hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sandbox_router.model.sandbox import Sandbox
from sandbox_router.ports import InstanceState
from tests.fakes.account import Box
from tests.fakes.provider import FakeProvider
from tests.sim.checks import ended_at
from tests.sim.world import LATE_MS, RECONCILE_MS, TENANT, WRITERS, World

LEASE_MS, SWEEP_MS, WINDOW_MS = 30_000, 60_000, 600_000
FAULT_MS = 35_000
"""How much later one fault of a vendor's may make an end."""
NETS: Mapping[str, frozenset[str]] = {
    "writers": WRITERS,
    "sweep": frozenset({"sweep"}),
    "guard": frozenset({"queue", "guard"}),
    "reconcile": frozenset({"reconcile"}),
    "provider": frozenset(),
    "all": frozenset({"queue", "sweep", "reconcile", "guard"}),
}
"""Which nets there are; `writers` is what runs every day. Without `queue` no writer's message
arrives. Providers enforce their limit in `provider` alone."""
BOUNDS_MS: Mapping[str, int] = {
    "writers": LATE_MS,
    "all": LATE_MS,
    "sweep": 2 * SWEEP_MS + LATE_MS,
    "guard": 600_000 + 90_000 + SWEEP_MS,
    "reconcile": 6 * SWEEP_MS,
    "provider": SWEEP_MS + WINDOW_MS,
}
"""I9: how long after its deadline an instance may live, by the net that is left."""
QUIRKS: Mapping[str, Mapping[str, Any]] = {
    "": {},
    "ghosts": {"ghost_ms": 60_000},
    "stiff": {"boots_ms": 20_000, "holds_booting": True},
    "early": {"skew_ms": -120_000},
    "pages": {"page": 1},
}
"""What a vendor is like for the whole of a life; without limits of its own its clock harms none."""
QUIRK_MS, TWIN_MS = 40_000, 16 * SWEEP_MS
"""How much later a quirk may make an end, and reconcile that of a second one under a name."""
RIVALS_OF = (
    *("client", "other", "destroy", "worker", "look", "extend", "pause", "touch"),
    *("31 client", "31 worker", "31 destroy", "95 reconcile", "95 client"),
)
"""What a second process does, after so many seconds in which the first one sleeps."""


@dataclass(frozen=True)
class Scenario:
    """The choices of one run. crash: at the n-th port call; crash_next: at the n-th of the next
    process. rival: what a second process does, and at which port call of the first."""

    crash: int = 0
    alpha: str = "ok"
    beta: str = "ok"
    retry: int | None = None
    destroy: int | None = None
    idempotent: bool = True
    lag_ms: int = 0
    env: bool = False
    crash_next: int = 0
    nets: str = "writers"
    boots_ms: int = 0
    quirk: str = ""
    faults: str = ""
    rival: str = ""
    rival_at: int = 0
    power: str = ""
    ttl: int = 120
    wait: float = 20.0

    def run(self) -> World:
        """Run to the end and check everything."""
        return run(self)


def run(scenario: Scenario) -> World:
    """A sandbox's life: created, created again, wished for, destroyed."""
    world = prepared(scenario)
    world.create(env=scenario.env, ttl=scenario.ttl, wait=scenario.wait)
    world.check()
    if scenario.quirk == "pages":  # a list of one has one page
        world.create("k0", ttl=scenario.ttl)
    if scenario.retry is not None:
        world.run_until(world.clock.now() + scenario.retry * 1000)
        world.create(env=scenario.env, ttl=scenario.ttl, wait=scenario.wait)
    for verb in scenario.power.split():
        for box in world.boxes():
            world.asked(_wish(world, verb, box.id))
            world.check()
    if scenario.destroy is not None:
        world.run_until(world.clock.now() + scenario.destroy * 1000)
        for box in world.boxes():
            world.destroy(box.id)
    finish(world, scenario.nets)
    check_instances(world, scenario)
    return world


def prepared(scenario: Scenario) -> World:
    """A world in which the scenario's faults, deaths and rivals are to come."""
    world = World(
        idempotent=scenario.idempotent,
        lag_ms=scenario.lag_ms,
        limits=scenario.nets == "provider",
        nets=NETS[scenario.nets],
    )
    world.providers["alpha"].script("create", *scenario.alpha.split())
    world.providers["beta"].script("create", scenario.beta)
    for provider in world.providers.values():
        provider.boots_ms = scenario.boots_ms
        quirked(provider, scenario.quirk)
        for fault in scenario.faults.split():
            op, _, kind = fault.partition(":")
            provider.script(op, kind)
    world.crash_at = scenario.crash or None
    if scenario.crash_next:
        world.crash_next.append(scenario.crash_next)
    if scenario.rival:
        world.rival = (scenario.rival_at, rival(world, scenario))
    return world


def quirked(provider: FakeProvider, quirk: str) -> None:
    """Make the vendor so."""
    for name, value in QUIRKS[quirk].items():
        setattr(provider, name, value)


def _wish(world: World, verb: str, id_: str) -> Callable[[], Any]:
    router = world.router
    wishes: Mapping[str, Callable[[], Any]] = {
        "pause": lambda: router.pause(TENANT, id_),
        "resume": lambda: router.resume(TENANT, id_),
        "extend": lambda: router.extend(TENANT, id_, 300, shorten=True),
        "shorten": lambda: router.extend(TENANT, id_, 45, shorten=True),
        "look": lambda: router.get(TENANT, id_, refresh=True),
        "stop": lambda: _vendor(world, "paused"),
        "start": lambda: _vendor(world, "running"),
        "lose": lambda: _vendor(world, None),
        "relabel": lambda: router.relabel(TENANT, id_, {"a": "b"}),
    }
    return wishes[verb]


def _vendor(world: World, state: InstanceState | None) -> None:
    """A vendor stops, starts or loses what runs; nobody asked for it."""
    for instance in world.living():
        if state is None:
            instance.dead_at = world.clock.now()
        else:
            instance.state = state


def rival(world: World, scenario: Scenario) -> Callable[[], None]:
    """What a second process does: at once, or when the first has slept over its lease."""
    pause, _, what = scenario.rival.rpartition(" ")
    process = world.process()

    def each(call: Callable[[Sandbox], Any]) -> None:
        for box in world.boxes():
            world.asked(lambda box=box: call(box))  # type: ignore[misc]

    def act() -> None:
        world.clock.sleep(float(pause or 0))
        match what:
            case "client":
                world.create(env=scenario.env, ttl=scenario.ttl, router=process)
            case "destroy":
                each(lambda box: world.destroy(box.id, router=process))
            case "worker":
                each(lambda box: process.advance(box.id))
            case "reconcile":
                world.asked(process.reconcile)
            case "other":
                world.create(ttl=60, router=process)
            case verb:
                each(lambda box: _wish_at(process, verb, box.id))

    return act


def _wish_at(process: Any, verb: str, id_: str) -> None:
    if verb == "extend":
        process.extend(TENANT, id_, 300, shorten=True)
    elif verb == "touch":
        process._wishes.touch(process.get(TENANT, id_))
    elif verb == "look":
        process.get(TENANT, id_, refresh=True)
    else:
        getattr(process, verb)(TENANT, id_)


def finish(world: World, nets: str) -> None:
    """Let time pass until this net alone has done its work, and look at what is left."""
    world.crash_next.clear()
    if nets in ("writers", "all", "sweep"):
        world.settle()
        if world.living() and "reconcile" in NETS[nets]:
            world.run_until(world.clock.now() + TWIN_MS)
        world.check_end()
        return
    deadlines = [record.expires_at for record in world.records()]
    last = max(deadlines, default=world.clock.now()) + BOUNDS_MS[nets] + WINDOW_MS
    world.run_until(last + 2 * LEASE_MS)
    if nets == "guard":
        world.settle()
    assert world.living() == [], f"{nets} alone left an instance"
    assert world.stored() == [], f"{nets} alone left a capture"
    world.check_answers()
    world.check_edges()


def check_instances(world: World, scenario: Scenario) -> None:
    """I9, I18: how long each instance lived, past its deadline or an acknowledged destroy."""
    expiries = {box.id: box.expires_at for box in world.boxes()}
    deadlines = dict(expiries)
    told = [e for e in world.history if (e.kind, e.op) == ("ok", "destroy")]
    acknowledged = [event for event in told if event.sandbox in deadlines]
    if scenario.nets in ("writers", "all", "sweep"):
        unknown = 0 if scenario.alpha == "ok" else FAULT_MS
        for event in acknowledged:
            wished = round(event.t * 1000) + unknown
            deadlines[str(event.sandbox)] = min(deadlines[str(event.sandbox)], wished)
    late = BOUNDS_MS[scenario.nets] + FAULT_MS * len(scenario.faults.split())
    late += RECONCILE_MS * scenario.faults.count("instances:")
    late += QUIRK_MS if scenario.quirk else 0
    if world.crashes or world.rivals:
        late += LEASE_MS + SWEEP_MS + (RECONCILE_MS if scenario.nets == "reconcile" else 0)
    for provider in world.providers.values():
        for box in provider.boxes.values():
            ends = expiries if box.late else deadlines
            deadline = ends[box.order.tags["constal-sandbox-id"]]
            dead = ended_at(box)
            assert dead is not None
            if box.born_at <= deadline:
                bound = deadline + late + (TWIN_MS if box.twin else 0)
                assert dead <= bound, f"I9: {(dead - deadline) / 1000} s late"
            if box.late and scenario.nets in ("writers", "all"):
                _check_late(world, box, dead, late)


def _check_late(world: World, box: Box, dead: int, late: int) -> None:
    """I8: what appears late, and is not the one that serves, is soon gone."""
    (record,) = [b for b in world.boxes() if b.id == box.order.tags["constal-sandbox-id"]]
    served = record.server is not None and record.server.instance_id == box.id
    assert served or dead <= box.born_at + late + 2 * FAULT_MS, "I8: a late one lived on"
