"""What the contract suites share: one AWS account per module, made when a test wants it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from adapters.aws.session import Session
from tests.contract.aws.cloud import aws


@pytest.fixture(scope="module")
def account() -> Iterator[Session]:
    with aws() as session:
        yield session
