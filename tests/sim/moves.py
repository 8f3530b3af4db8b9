"""What may happen in a life: everything clients, vendors, storage, workers and time can do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sandbox_router.model.record import Record
from sandbox_router.model.sandbox import Sandbox
from sandbox_router.model.snapshot import Snapshot
from sandbox_router.store.items import record_key
from tests.fakes.account import Box
from tests.fakes.provider import Shot
from tests.fakes.weak import Weak
from tests.sim.captures import named
from tests.sim.scenario import Scenario, quirked, rival
from tests.sim.table import FastTable
from tests.sim.world import DEPLOYMENT, TENANT, World

CREATE = (
    *("ok", "ok", "lost", "cut", "late", "slow", "twice", "brief"),
    *("capacity", "rate_limited", "quota", "outage", "region", "conflict"),
)
OTHER = (
    *("ok", "ok", "ok", "cut", "lost", "absent", "hidden", "gone", "conflict", "outage"),
    *("kept", "ending", "skipped"),
)
HIDES, KEEPS = {"absent", "hidden", "gone"}, {"kept", "ending"}
OPS = (
    *("destroy", "get", "find", "pause", "resume", "extend", "instances"),
    *("find_capture", "get_capture", "destroy_capture", "captures"),
)
WEAK: Mapping[str, Any] = {
    "lag_ms": 1_000,
    "contended": 0.05,
    "lost": 0.05,
    "throttled": 0.03,
    "short": 0.2,
}
KEYS = ("k1", "k2", None)
SHOT_KEYS, SHOT_TTLS = ("s1", "s2", None), (45, 300)
SHOT_RIVALS = ("take", "untake", "31 take", "31 untake")
"""What a second process does to snapshots, as `RIVALS_OF` says of sandboxes."""
TENANTS = (TENANT, TENANT, "other")
Wish = Callable[[World, Sandbox], Any]
WISHES: Mapping[str, Wish] = {
    "pause": lambda w, b: w.router.pause(b.tenant, b.id),
    "resume": lambda w, b: w.router.resume(b.tenant, b.id),
    "extend": lambda w, b: w.router.extend(b.tenant, b.id, 300, shorten=True),
    "shorten": lambda w, b: w.router.extend(b.tenant, b.id, 45, shorten=True),
    "look": lambda w, b: w.router.get(b.tenant, b.id, refresh=True),
    "relabel": lambda w, b: w.router.relabel(b.tenant, b.id, {"a": "b"}),
    "idle": lambda w, b: w.router.idle(b.tenant, b.id, 60),
    "touch": lambda w, b: w.router._wishes.touch(b),
    "echo": lambda w, b: w.router.advance(b.id),
}
"""What a client may wish of a sandbox; `echo` is a message nobody sent."""


@dataclass(frozen=True)
class Setting:
    """The choices a life begins with."""

    idempotent: bool = True
    lag_ms: int = 0
    weak: bool = False
    boots_ms: int = 0
    shots_ms: int = 0
    quirk: str = ""
    skew_ms: int = 0
    stops: bool = False
    all_nets: bool = False
    seed: int = 0


def begun(setting: Setting) -> World:
    """A world of this setting; its providers have no limits of their own."""
    nets = {"queue", "sweep"} | ({"reconcile", "guard"} if setting.all_nets else set())
    world = World(
        idempotent=setting.idempotent,
        lag_ms=setting.lag_ms,
        seed=setting.seed,
        weak=dict(WEAK) if setting.weak else None,
        limits=False,
        nets=frozenset(nets),
        skew_ms=setting.skew_ms,
        stops=setting.stops,
    )
    for provider in world.providers.values():
        provider.boots_ms, provider.captures_ms = setting.boots_ms, setting.shots_ms
        # Two looks are the lag apart by two clocks: what a profile declares has that to spare.
        provider.list_lag_ms = max(0, setting.lag_ms - 4 * setting.skew_ms)
        quirked(provider, setting.quirk)
    return world


def fault(world: World, pool: str, op: str, kind: str) -> None:
    """The next call of an operation meets this.

    Left out is what nobody could bear: a vendor that keeps an instance it said it destroyed, and
    does not show it either, and one that twice in a row does not show what is alive. A second one
    under a name only reconcile can see.
    """
    faults = world.providers[pool].faults
    coming = {each for script in faults.values() for each in script}
    hidden = coming & HIDES or any(record.missing_since for record in world.records())
    hides = kind in HIDES and op in ("get", "pause", "resume", "extend", "get_capture")
    if (hides and (hidden or coming & KEEPS)) or (kind in KEEPS and hidden):
        kind = "cut"
    if kind == "twice" and "reconcile" not in world.nets:
        kind = "lost"
    if kind in ("twice", "brief") and op == "capture":
        kind = "failed"
    if kind == "gone" and op not in ("pause", "resume", "extend"):
        kind = "cut"
    world.providers[pool].script(op, kind)


def wish(world: World, verb: str, box: Sandbox) -> None:
    """A client's wish."""
    world.asked(lambda: WISHES[verb](world, box))


def happens(world: World, what: str, instance: Box) -> None:
    """A vendor does something nobody asked for."""
    if what == "lose":
        instance.dead_at = world.clock.now()
    else:
        instance.state = "paused" if what == "stop" else "running"


def rivalled(world: World, name: str, after: int) -> None:
    """A second process will act, so many port calls from now."""
    world.rival = (world.ticks + after, acting(world, name))


def acting(world: World, name: str, ttl: int = 120) -> Callable[[], None]:
    """What a second process does."""
    if name in SHOT_RIVALS:
        return _acting_on_shots(world, name)
    return rival(world, Scenario(rival=name, ttl=ttl))


def _acting_on_shots(world: World, name: str) -> Callable[[], None]:
    pause, _, what = name.rpartition(" ")
    process = world.process()

    def act() -> None:
        world.clock.sleep(float(pause or 0))
        if what == "take":
            for box in world.boxes():
                world.take_snapshot(box, ttl=SHOT_TTLS[1], router=process)
        else:
            for shot in world.shots():
                world.destroy(shot.id, shot.tenant, process)

    return act


def storm(world: World, op: str, count: int) -> None:
    """The storage fails a few times, just now."""
    if isinstance(world.weak, Weak):
        if op == "lost":
            world.weak.writes.extend(["lost"] * count)
        else:
            world.weak.writes.extend(["contended"] * count)


def forgotten(world: World, record: Record) -> None:
    """A finished record is lost, and what it was of turns out to be there: nobody knows it."""
    if "reconcile" not in world.nets or not isinstance(world.memory, FastTable):
        return
    for item in world.memory.partition(record_key(record.id)[0]):
        world.memory.replace((str(item["pk"]), str(item["sk"])), None)
    made = _shots_of(world, record) if isinstance(record, Snapshot) else _boxes_of(world, record)
    for each in made:
        if each.dead_at:
            each.dead_at, each.deleted_by_us = None, False
            return


def _boxes_of(world: World, record: Record) -> Iterable[Box | Shot]:
    boxes = (box for vendor in world.providers.values() for box in vendor.boxes.values())
    return (box for box in boxes if box.order.tags["constal-sandbox-id"] == record.id)


def _shots_of(world: World, record: Record) -> Iterable[Box | Shot]:
    shots = (shot for vendor in world.providers.values() for shot in vendor.shots.values())
    return (shot for shot in shots if named(DEPLOYMENT, shot) == record.id)
