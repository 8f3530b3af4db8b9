"""An audit trail is in the order of what happened, whatever the writers' clocks say."""

from __future__ import annotations

from sandbox_router.model.sandbox import State
from tests.sim import audit
from tests.sim.world import TENANT
from tests.unit.core.scenes import Scene


def test_a_machine_whose_clock_is_behind_writes_no_entry_before_anothers() -> None:
    scene = Scene(skew_ms=4_000)
    scene.router = scene.process()  # four seconds ahead
    box = scene.made()
    scene.router = scene.process()  # four seconds behind
    left = scene.router.destroy(TENANT, box.id)
    assert (left.state, left.billed_ms) == (State.DESTROYING, 0)
    scene.on(60)
    assert scene.seen(box.id).state is State.DESTROYED
    audit.check_trail(scene.memory, scene.seen(box.id))
