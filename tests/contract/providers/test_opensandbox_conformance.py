"""Every case of the conformance suite against the provider host's OpenSandbox dialect."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from adapters import providers
from adapters.conformance import CASES, Bench, Case, perform
from adapters.providers.opensandbox.provider import build
from sandbox_router.model.secret import Secret
from sandbox_router.model.size import Shape
from tests.contract.providers.conftest import OPENSANDBOX_KEY, HostFaults

SKIPPED = {
    "R-CREATE-08": "this run has no shape in the provider's answer",
    "R-CREATE-10": "this run has no idempotent create",
    "R-EXEC-08": "this run has no input of commands",
    "R-FIND-03": "this run has no free label values",
    "R-PAUSE-01": "this run has no pause that keeps memory",
    "R-PORT-02": "this run has no way to the instances' ports",
    "R-SNAP-06": "this run has no idempotent captures",
}
"""What OpenSandbox does not promise, or this host cannot show; anything else is a hole."""


@pytest.fixture(scope="module")
def bench(host_url: str) -> Iterator[Bench]:
    profile = providers.profile("opensandbox")
    settings = {"api_url": f"{host_url}/opensandbox/v1"}
    account = build(profile, Secret(OPENSANDBOX_KEY), settings)
    stranger = build(profile, Secret("stranger"), settings)
    faults = HostFaults(host_url)
    tested = Bench(
        account,
        profile,
        "python:3.12",
        Shape.of(1, 1),
        faults=faults,
        stranger=stranger,
        dials=False,  # the host has no proxy to the ports of its instances
    )
    yield tested
    tested.close()
    for opened in (account, stranger, faults):
        opened.close()


@pytest.mark.xdist_group("provider-host")
@pytest.mark.parametrize("one", CASES, ids=lambda one: one.id)
def test_the_opensandbox_adapter_does_what_the_port_promises(bench: Bench, one: Case) -> None:
    result = perform(one, bench)
    assert result.outcome == ("skipped" if one.id in SKIPPED else "passed"), result.detail
    assert result.detail == SKIPPED.get(one.id, "")
