"""Deployments for the tests: one for all that only ask, and fresh ones for those that break."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.local.acceptance.deployment import Deployment

Deploy = Callable[..., Deployment]


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A running deployment; tests leave no sandbox and no fault behind."""
    deployment = Deployment(tmp_path_factory.mktemp("shared"))
    try:
        yield deployment.start()
    finally:
        deployment.close()


@pytest.fixture
def deploy(tmp_path: Path) -> Iterator[Deploy]:
    """Makes deployments that are stopped after the test; not started yet."""
    made: list[Deployment] = []

    def make(**env: str) -> Deployment:
        root = tmp_path / str(len(made))
        root.mkdir()
        made.append(Deployment(root, **env))
        return made[-1]

    yield make
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(Deployment.end, made))
