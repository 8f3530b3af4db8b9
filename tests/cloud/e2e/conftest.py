"""Two deployments for the end-to-end tests, which leave no sandbox, no fault and no switch behind:
one with a proxy that fails when it is told to, one where every function is held to its role. Tests
of the second say so: `cloud = enforced`. What was measured is shown in the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cloud.e2e.deployment import Cloud
from tests.cloud.synthesis import Assembly, Missing
from tests.conftest import MISSING_HERE
from tests.local.acceptance.deployment import Deployment

SAID = "said"
Say = Callable[[str], None]


@pytest.fixture(scope="session")
def cloud(tmp_path_factory: pytest.TempPathFactory, buffered: Assembly) -> Iterator[Cloud]:
    """The router on an emulator of AWS that can fail."""
    yield from _deployed(tmp_path_factory.mktemp("cloud"), buffered, enforced=False)


@pytest.fixture(scope="session")
def enforced(tmp_path_factory: pytest.TempPathFactory, buffered: Assembly) -> Iterator[Cloud]:
    """The router on an emulator of AWS that refuses what a role does not allow."""
    yield from _deployed(tmp_path_factory.mktemp("enforced"), buffered, enforced=True)


def _deployed(root: Path, assembly: Assembly, *, enforced: bool) -> Iterator[Cloud]:
    try:
        deployed = Cloud(root, assembly, enforced=enforced)
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


@pytest.fixture
def say(record_property: Callable[[str, object], None]) -> Say:
    """Tell whoever runs the tests what was measured."""
    return lambda line: record_property(SAID, line)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [r for kind in ("passed", "failed") for r in terminalreporter.stats.get(kind, ())]
    for report in reports:
        for name, line in report.user_properties:
            if name == SAID:
                terminalreporter.write_line(str(line))
