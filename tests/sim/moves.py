"""What may happen in a life: everything clients, vendors, storage, workers and time can do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sandbox_router.model.sandbox import Sandbox
from tests.fakes.account import Box
from tests.fakes.weak import Weak
from tests.sim.scenario import Scenario, quirked, rival
from tests.sim.table import FastTable
from tests.sim.world import TENANT, World

CREATE = (
    *("ok", "ok", "lost", "cut", "late", "slow", "twice", "brief"),
    *("capacity", "rate_limited", "quota", "outage", "region", "conflict"),
)
OTHER = (
    *("ok", "ok", "ok", "cut", "lost", "absent", "hidden", "gone", "conflict", "outage"),
    *("kept", "ending", "skipped"),
)
HIDES, KEEPS = {"absent", "hidden", "gone"}, {"kept", "ending"}
OPS = ("destroy", "get", "find", "pause", "resume", "extend", "instances")
WEAK: Mapping[str, Any] = {
    "lag_ms": 1_000,
    "contended": 0.05,
    "lost": 0.05,
    "throttled": 0.03,
    "short": 0.2,
}
KEYS = ("k1", "k2", None)
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
    quirk: str = ""
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
    )
    for provider in world.providers.values():
        provider.boots_ms = setting.boots_ms
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
    hidden = coming & HIDES or any(box.missing_since for box in world.boxes())
    hides = kind in HIDES and op in ("get", "pause", "resume", "extend")
    if (hides and (hidden or coming & KEEPS)) or (kind in KEEPS and hidden):
        kind = "cut"
    if kind == "twice" and "reconcile" not in world.nets:
        kind = "lost"
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
    world.rival = (world.ticks + after, rival(world, Scenario(rival=name)))


def storm(world: World, op: str, count: int) -> None:
    """The storage fails a few times, just now."""
    if isinstance(world.weak, Weak):
        if op == "lost":
            world.weak.writes.extend(["lost"] * count)
        else:
            world.weak.writes.extend(["contended"] * count)


def forgotten(world: World, box: Sandbox) -> None:
    """A finished sandbox's record is lost, and its instance turns out to live: nobody knows it."""
    if "reconcile" not in world.nets or not isinstance(world.memory, FastTable):
        return
    for item in world.memory.partition(f"SBX#{box.id}"):
        world.memory.replace((str(item["pk"]), str(item["sk"])), None)
    for provider in world.providers.values():
        for instance in provider.boxes.values():
            if instance.order.tags["constal-sandbox-id"] == box.id and instance.dead_at:
                instance.dead_at, instance.deleted_by_us = None, False
                return
