"""Syntheses for the tests of the stacks; the end-to-end tests run only with E2E=1 (`make e2e`)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cloud.synthesis import Assembly, Missing, synthesise
from tests.conftest import MISSING_HERE

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    ours = [item for item in items if item.path.is_relative_to(HERE)]
    for item in ours:
        # One synthesis, and one deployment of each kind, serve them all.
        waits = "enforced" in getattr(item, "fixturenames", ())
        item.add_marker(pytest.mark.xdist_group("enforced" if waits else "cloud"))
    if os.environ.get("E2E") == "1":
        return
    later = {item for item in ours if item.path.is_relative_to(HERE / "e2e")}
    if later:
        config.hook.pytest_deselected(items=list(later))
        items[:] = [item for item in items if item not in later]


@pytest.fixture(scope="session")
def assembly(tmp_path_factory: pytest.TempPathFactory) -> Assembly:
    """The stacks as an operator gets them who asks for nothing else."""
    return _made(tmp_path_factory.mktemp("cdk") / "out")


@pytest.fixture(scope="session")
def buffered(tmp_path_factory: pytest.TempPathFactory) -> Assembly:
    """The stacks for this machine's architecture and Python, without streaming: made
    by the command line, as `make deploy` does it.
    """
    return _made(
        tmp_path_factory.mktemp("cdk-here") / "out", cli=True, **Assembly.here(), streaming="off"
    )


def _made(out: Path, *, cli: bool = False, **context: str) -> Assembly:
    try:
        return synthesise(out, cli=cli, **context)
    except Missing as missing:
        pytest.skip(f"{MISSING_HERE} {missing}")
