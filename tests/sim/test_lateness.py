"""No instance lives longer past its deadline than the one net that is left promises."""

from __future__ import annotations

import pytest

from tests.sim.lateness import NETS, lateness


@pytest.mark.parametrize("net", NETS)
def test_each_net_alone_keeps_its_bound(net: str) -> None:
    found = list(lateness(NETS[net]))
    assert len(found) >= 63, "too few lives to say"
    assert max(found) <= NETS[net].bound_ms
