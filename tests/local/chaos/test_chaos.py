"""A short storm in every `make test`; `make chaos` has the long ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.local.chaos.run import Setting, run

SHORT = Setting(kills=20, seed=20, clients=8, ttls=(30, 32), pace=0.25)


@pytest.mark.slow
def test_twenty_kills_under_load_and_nothing_is_doubled_or_left(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    outcome = run(SHORT, tmp_path)
    record_property("chaos", str(outcome))
    print(outcome)
    assert outcome.good, str(outcome)
    assert outcome.kills >= SHORT.kills
    assert outcome.answers["create"]["201"] >= SHORT.kills
    assert outcome.internal == []
