"""Every life there may be, as a state machine: hypothesis finds the shortest that goes wrong."""

from __future__ import annotations

from typing import Any

from hypothesis import assume
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

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

POOLS = st.sampled_from(["alpha", "beta"])
PICK = st.integers(0, 7)


class Safety(RuleBasedStateMachine):
    """What must hold at every moment, whatever happens."""

    world: Any = None

    @initialize(
        idempotent=st.booleans(),
        lag_ms=st.sampled_from([0, 5_000]),
        weak=st.booleans(),
        boots_ms=st.sampled_from([0, 3_000]),
        shots_ms=st.sampled_from([0, 3_000]),
        skew_ms=st.sampled_from([0, 500]),
        stops=st.booleans(),
        quirk=st.sampled_from(sorted(QUIRKS)),
        all_nets=st.booleans(),
        seed=st.integers(0, 99),
    )
    def begin(self, **choices: Any) -> None:
        self.world = moves.begun(Setting(**choices))

    def one(self, pick: int) -> Sandbox:
        boxes = self.world.boxes()
        assume(boxes)
        found: Sandbox = boxes[pick % len(boxes)]
        return found

    def one_shot(self, pick: int) -> Snapshot:
        shots = self.world.shots()
        assume(shots)
        found: Snapshot = shots[pick % len(shots)]
        return found

    @rule(
        key=st.sampled_from(KEYS),
        tenant=st.sampled_from(TENANTS),
        wait=st.sampled_from([0.0, 5.0, 20.0]),
        env=st.booleans(),
    )
    def create(self, key: str | None, tenant: str, wait: float, env: bool) -> None:
        self.world.create(key, tenant=tenant, wait=wait, env=env and key == "k2")

    @rule(tenant=st.sampled_from(TENANTS))
    def another_body(self, tenant: str) -> None:
        self.world.create("k1", tenant=tenant, ttl=90)

    @rule(seconds=st.sampled_from([30, 60]))
    def create_idle(self, seconds: int) -> None:
        self.world.create("k3", idle=seconds, ttl=600)

    @rule(pick=PICK)
    def destroy(self, pick: int) -> None:
        box = self.one(pick)
        self.world.destroy(box.id, box.tenant)

    @rule(pick=PICK, verb=st.sampled_from(sorted(WISHES)))
    def wish(self, pick: int, verb: str) -> None:
        moves.wish(self.world, verb, self.one(pick))

    @rule(
        pick=PICK,
        key=st.sampled_from(SHOT_KEYS),
        ttl=st.sampled_from(SHOT_TTLS),
        wait=st.sampled_from([0.0, 20.0]),
    )
    def take(self, pick: int, key: str | None, ttl: int, wait: float) -> None:
        self.world.take_snapshot(self.one(pick), key, ttl=ttl, wait=wait)

    @rule(pick=PICK)
    def end_shot(self, pick: int) -> None:
        shot = self.one_shot(pick)
        self.world.destroy(shot.id, shot.tenant)

    @rule(pick=PICK, ttl=st.sampled_from([60, 300]))
    def copy(self, pick: int, ttl: int) -> None:
        shot = self.one_shot(pick)
        self.world.create(None, ttl=ttl, of=shot.id, tenant=shot.tenant)

    @rule(pick=PICK, what=st.sampled_from(["lose", "stop", "start"]))
    def vendor_acts(self, pick: int, what: str) -> None:
        living = self.world.living()
        assume(living)
        moves.happens(self.world, what, living[pick % len(living)])

    @rule(pool=POOLS, kind=st.sampled_from(CREATE))
    def create_fault(self, pool: str, kind: str) -> None:
        moves.fault(self.world, pool, "create", kind)

    @rule(pool=POOLS, kind=st.sampled_from(CREATE))
    def capture_fault(self, pool: str, kind: str) -> None:
        moves.fault(self.world, pool, "capture", kind)

    @rule(pool=POOLS, op=st.sampled_from(OPS), kind=st.sampled_from(OTHER))
    def other_fault(self, pool: str, op: str, kind: str) -> None:
        moves.fault(self.world, pool, op, kind)

    @rule(after=st.integers(1, 30))
    def crash(self, after: int) -> None:
        self.world.crash_at = self.world.ticks + after

    @rule(name=st.sampled_from((*RIVALS_OF, *SHOT_RIVALS)), after=st.integers(1, 12))
    def rival(self, name: str, after: int) -> None:
        moves.rivalled(self.world, name, after)

    @rule(op=st.sampled_from(["lost", "contended"]), count=st.integers(1, 6))
    def storm(self, op: str, count: int) -> None:
        moves.storm(self.world, op, count)

    @rule(on=st.booleans())
    def nets(self, on: bool) -> None:
        self.world.nets = self.world.nets | {"queue"} if on else self.world.nets - {"queue"}

    @precondition(lambda self: "reconcile" in self.world.nets)
    @rule()
    def reconcile(self) -> None:
        self.world.asked(self.world.router.reconcile)

    @rule(seconds=st.integers(1, 60))
    def time_passes(self, seconds: int) -> None:
        self.world.run_until(self.world.clock.now() + seconds * 1000)

    @invariant()
    def holds(self) -> None:
        if self.world is not None:
            self.world.check()


class Liveness(Safety):
    """The same, and in the end peace: everything within its bound, and nothing left."""

    def teardown(self) -> None:
        if self.world is None:
            return
        peace.heal(self.world)
        peace.in_time(self.world)
        peace.to_the_end(self.world)
