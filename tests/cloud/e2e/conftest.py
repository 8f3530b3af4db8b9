"""One deployment for all end-to-end tests: they leave no sandbox, no fault and no switch behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cloud.e2e.deployment import Cloud
from tests.cloud.synthesis import Assembly, Missing
from tests.conftest import MISSING_HERE
from tests.local.acceptance.deployment import Deployment


@pytest.fixture(scope="session")
def cloud(tmp_path_factory: pytest.TempPathFactory, buffered: Assembly) -> Iterator[Cloud]:
    """The router on an emulator of AWS."""
    try:
        deployed = Cloud(tmp_path_factory.mktemp("cloud"), buffered)
    except Missing as missing:
        pytest.skip(f"{MISSING_HERE} {missing}")
    yield deployed
    deployed.close()


@pytest.fixture
def local(tmp_path: Path) -> Iterator[Deployment]:
    """`make run`, without streaming like the other."""
    deployment = Deployment(tmp_path, STREAMING="off")
    try:
        yield deployment.start()
    finally:
        deployment.close()
