"""Random lives: one seed is one run, with many crashes, rivals, faults, wishes and accidents."""

from __future__ import annotations

import random

from sandbox_router.model.sandbox import Sandbox
from sandbox_router.model.snapshot import Snapshot
from tests.sim import moves, peace
from tests.sim.moves import (
    CREATE,
    KEYS,
    OPS,
    OTHER,
    SHOT_KEYS,
    SHOT_RIVALS,
    SHOT_TTLS,
    TENANTS,
    WISHES,
    Setting,
)
from tests.sim.scenario import QUIRKS, RIVALS_OF
from tests.sim.world import World

MOVES = (
    *("create", "create", "create", "body", "idle", "destroy", "wish", "wish", "wish", "wish"),
    *("vendor", "vendor", "rival", "storm", "nets", "forget", "run", "run", "run", "run"),
    *("take", "take", "take", "shot", "shot"),
)
ABOUT = ("destroy", "wish", "forget", "take", "shot")
RIVALS = (*RIVALS_OF, *SHOT_RIVALS)


def live(seed: int, count: int = 30) -> World:
    """So many random moves, then peace until everything is settled."""
    chance = random.Random(seed)
    world = moves.begun(
        Setting(
            idempotent=chance.random() < 0.5,
            lag_ms=chance.choice((0, 5_000)),
            weak=chance.random() < 0.5,
            boots_ms=chance.choice((0, 0, 3_000)),
            shots_ms=chance.choice((0, 0, 3_000)),
            stops=chance.random() < 0.2,
            quirk=chance.choice(("", "", *QUIRKS)),
            skew_ms=chance.choice((0, 0, 0, 500)),
            all_nets=chance.random() < 0.5,
            seed=seed,
        )
    )
    for name in world.providers:
        for kind in chance.choices(CREATE, k=6):
            moves.fault(world, name, "create", kind)
        for kind in chance.choices(CREATE, k=3):
            moves.fault(world, name, "capture", kind)
        for op in OPS:
            for kind in chance.choices(OTHER, k=3):
                moves.fault(world, name, op, kind)
    for _ in range(count):
        if chance.random() < 0.3:
            world.crash_at = world.ticks + chance.randint(1, 40)
        _move(world, chance)
        world.check()
    peace.heal(world)
    peace.in_time(world)
    peace.to_the_end(world)
    return world


def _move(world: World, chance: random.Random) -> None:
    move = chance.choice(MOVES)
    if move in ABOUT:
        _about_one(world, chance, move)
        return
    match move:
        case "create":
            key = chance.choice(KEYS)
            wait = chance.choice((0.0, 5.0, 20.0))
            ttl, tenant = 120 if key else chance.choice((120, 1_200)), chance.choice(TENANTS)
            world.create(key, ttl=ttl, wait=wait, env=key == "k2", tenant=tenant)
        case "body":
            world.create("k1", ttl=90)
        case "idle":
            world.create("k3", idle=chance.choice((30, 60)), ttl=600)
        case "vendor" if world.living():
            what = chance.choice(("lose", "stop", "start"))
            moves.happens(world, what, chance.choice(world.living()))
        case "rival":
            moves.rivalled(world, chance.choice(RIVALS), chance.randint(1, 15))
        case "storm":
            moves.storm(world, chance.choice(("lost", "contended")), chance.randint(1, 6))
        case "nets":
            world.nets = world.nets ^ {"queue"}
        case _:
            world.run_until(world.clock.now() + chance.randint(1, 60_000))


def _about_one(world: World, chance: random.Random, move: str) -> None:
    if move != "shot" and (boxes := world.boxes()):
        _about(world, chance, move, chance.choice(boxes))
    elif move == "shot" and (shots := world.shots()):
        _about_shot(world, chance, chance.choice(shots))


def _about(world: World, chance: random.Random, move: str, box: Sandbox) -> None:
    match move:
        case "wish":
            moves.wish(world, chance.choice(sorted(WISHES)), box)
        case "destroy" if chance.random() < 0.5:
            world.destroy(box.id, box.tenant)
        case "forget" if box.over and chance.random() < 0.3:
            moves.forgotten(world, box)
        case "take":
            key, wait = chance.choice(SHOT_KEYS), chance.choice((0.0, 5.0, 20.0))
            world.take_snapshot(box, key, ttl=chance.choice(SHOT_TTLS), wait=wait)


def _about_shot(world: World, chance: random.Random, shot: Snapshot) -> None:
    match chance.choice(("copy", "copy", "destroy", "echo", "forget", "forget")):
        case "copy":
            world.create(None, ttl=chance.choice((60, 300)), of=shot.id, tenant=shot.tenant)
        case "destroy":
            world.destroy(shot.id, shot.tenant)
        case "echo":
            world.asked(lambda: world.router.advance(shot.id))
        case _ if shot.over:
            moves.forgotten(world, shot)
