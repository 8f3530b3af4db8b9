"""Tests of one group run in one process: what they share is made once."""

from __future__ import annotations

import pytest


@pytest.mark.xdist_group("together")
def test_a_group_is_in_the_id_where_the_scheduler_looks(request: pytest.FixtureRequest) -> None:
    if hasattr(request.config, "workerinput") and request.config.getoption("loadgroup"):
        assert request.node.nodeid.endswith("@together")
