"""Every case of the conformance suite against the provider host's E2B dialect."""

from __future__ import annotations

from dataclasses import replace

import httpcore
import pytest

from adapters import providers
from adapters.conformance import CASES, Bench, Case, perform
from sandbox_router.model.size import Shape
from sandbox_router.ports import Exit
from tests.fakes.clock import FakeClock
from tests.fakes.provider import FakeProvider

SKIPPED = {
    "R-SNAP-06": "this run has no idempotent captures",
    "R-SNAP-16": "this run has no captures that are ready later",
    "R-PORT-02": "this run has no way to the instances' ports",
}
"""What this host cannot show; anything else that is skipped here is a hole."""


@pytest.mark.xdist_group("provider-host")
@pytest.mark.parametrize("one", CASES, ids=lambda one: one.id)
def test_the_e2b_adapter_does_what_the_port_promises(bench: Bench, one: Case) -> None:
    result = perform(one, bench)
    assert result.outcome == ("skipped" if one.id in SKIPPED else "passed"), result.detail
    assert result.detail == SKIPPED.get(one.id, "")


@pytest.mark.xdist_group("provider-host")
def test_a_command_leaves_its_connection_to_the_next_one(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    ref = bench.shared()
    assert bench.shell(ref, "true").exit == Exit(0)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a new connection")

    monkeypatch.setattr(httpcore.SyncBackend, "connect_tcp", refuse)
    for _ in range(3):
        assert bench.shell(ref, "exit 3").exit == Exit(3)
        assert bench.provider.get(ref.instance_id) is not None


@pytest.mark.parametrize(("repeats", "outcome"), [(True, "passed"), (False, "failed")])
def test_a_repeated_capture_is_told_from_a_second_one(repeats: bool, outcome: str) -> None:
    details = {"contents": ["disk"], "interrupts": None, "idempotent": True}
    profile = replace(providers.profile("e2b"), abilities={"snapshots": details})
    vendor = FakeProvider("alpha", FakeClock(), captures_repeat=repeats)
    bench = Bench(vendor, profile, "image", Shape.of(1, 1))
    (one,) = (one for one in CASES if one.id == "R-SNAP-06")
    assert perform(one, bench).outcome == outcome
    bench.close()
    assert (vendor.living(), vendor.stored()) == ([], [])


def test_every_case_has_its_own_id_and_a_sentence() -> None:
    assert len({one.id for one in CASES}) == len(CASES)
    assert all(one.title for one in CASES)
