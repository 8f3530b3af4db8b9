"""Every case of the conformance suite against the provider host's E2B dialect."""

from __future__ import annotations

import pytest

from adapters.providers.conformance import CASES, Bench, Case, perform

SKIPPED = {
    "R-PORT-02": "this run has no way to the instances' ports",
}
"""What this host cannot show; anything else that is skipped here is a hole."""


@pytest.mark.xdist_group("provider-host")
@pytest.mark.parametrize("one", CASES, ids=lambda one: one.id)
def test_the_e2b_adapter_does_what_the_port_promises(bench: Bench, one: Case) -> None:
    result = perform(one, bench)
    assert result.outcome == ("skipped" if one.id in SKIPPED else "passed"), result.detail
    assert result.detail == SKIPPED.get(one.id, "")


def test_every_case_has_its_own_id_and_a_sentence() -> None:
    assert len({one.id for one in CASES}) == len(CASES)
    assert all(one.title for one in CASES)
