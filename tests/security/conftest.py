"""One deployment for all threats: everything logged, and keys of two tenants."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.security.target import Target


@pytest.fixture(scope="session")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    made = Target(tmp_path_factory.mktemp("target"))
    try:
        yield made.started()
    finally:
        made.end()
