"""Deployments for the tests: one for all that only ask, one whose pools refuse, and fresh ones for
those that break.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.local.acceptance.deployment import Deployment

Deploy = Callable[..., Deployment]


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A running deployment; tests leave no sandbox and no fault behind, and no pool refused."""
    yield from running(tmp_path_factory.mktemp("shared"))


@pytest.fixture(scope="session")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """Another; its pools may be cooling down from a test before: ask for the `order`."""
    yield from running(tmp_path_factory.mktemp("faulty"))


def running(root: Path) -> Iterator[Deployment]:
    deployment = Deployment(root)
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
