"""A world per test, put behind the handlers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from functions.edge import wiring
from functions.edge.settings import Settings
from tests.unit.functions.world import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World()
    wiring.use(lambda _: made.router, Settings(state=tmp_path))
    yield made
    wiring.use(wiring.build)
