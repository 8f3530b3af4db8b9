"""The state machine of all lives, bounded and the same at each run; `make sim` looks for longer."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.sim.machine import Liveness, Safety

SHORT = settings(
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=50,
    stateful_step_count=30,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.generate, Phase.shrink),
)
LONG = settings(SHORT, max_examples=1_500, stateful_step_count=50, derandomize=False)


@pytest.mark.parametrize("machine", [Safety, Liveness])
def test_every_promise_is_kept(machine: type[Safety], request: pytest.FixtureRequest) -> None:
    chosen = LONG if request.config.getoption("--long") else SHORT
    run_state_machine_as_test(machine, settings=chosen)
