"""One deployment for all end-to-end tests: they leave no sandbox, no fault and no switch behind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cloud.e2e.deployment import Cloud
from tests.cloud.synthesis import Assembly, Missing
from tests.conftest import MISSING_HERE


@pytest.fixture(scope="session")
def cloud(tmp_path_factory: pytest.TempPathFactory, buffered: Assembly) -> Iterator[Cloud]:
    """The router on an emulator of AWS."""
    try:
        deployed = Cloud(tmp_path_factory.mktemp("cloud"), buffered)
    except Missing as missing:
        pytest.skip(f"{MISSING_HERE} {missing}")
    yield deployed
    deployed.close()
