"""A world per test, put behind the handlers, and what they log."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from functions.edge import wiring
from functions.edge.log import log
from functions.edge.settings import Settings
from tests.unit.functions.world import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World()
    wiring.use(lambda _: made.router, Settings(state=tmp_path), made.outward)
    yield made
    wiring.use(wiring.build)


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """What the handlers log, at DEBUG, as it leaves the process."""
    log()
    ours = logging.getLogger("sandbox-router")
    (handler,) = (h for h in ours.handlers if isinstance(h, logging.StreamHandler))
    level, stream, lines = ours.level, handler.stream, io.StringIO()
    handler.stream = lines  # not setStream: what it wrote to may be closed
    ours.setLevel(logging.DEBUG)
    yield lines
    ours.setLevel(level)
    handler.stream = stream
