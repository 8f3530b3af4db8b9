"""The judge is judged: each wrong it looks for, made up."""

from __future__ import annotations

from typing import Any

from tests.local.chaos import verdict
from tests.local.chaos.clients import Event

DUE = 1_000.0


def event(op: str, status: int, **more: Any) -> Event:
    return Event(op, DUE - 20, DUE - 19, status, **more)


def box(state: str = "destroyed", started: bool = True) -> dict[str, Any]:
    at = "1970-01-01T00:16:40+00:00"
    return {"state": state, "started_at": at if started else None, "expires_at": at}


def instance(gone: float | None, born: float = DUE - 30, of: str = "sbx-a") -> dict[str, Any]:
    return {
        "id": "i-1",
        "metadata": {"constal-sandbox-id": of},
        "created_ms": round(born * 1000),
        "gone_ms": None if gone is None else round(gone * 1000),
    }


def up(low: float, high: float) -> float:
    return 0.0


def test_two_sandboxes_of_one_key_are_a_double_unless_one_failed_before_it_served() -> None:
    history = [event("create", 202, key="k", sandbox=s) for s in ("sbx-a", "sbx-b")]
    assert len(verdict.doubles(history, {"sbx-a": box(), "sbx-b": box()})) == 1
    assert len(verdict.doubles(history, {"sbx-a": box("failed"), "sbx-b": box()})) == 1
    assert len(verdict.doubles(history, {"sbx-a": box()})) == 1  # no record is no excuse
    assert verdict.doubles(history, {"sbx-a": box("failed", False), "sbx-b": box()}) == []
    retried = [event("create", status, key="k", sandbox="sbx-a") for status in (202, 201, 201)]
    assert verdict.doubles(retried, {"sbx-a": box()}) == []


def test_two_instances_shown_for_one_sandbox_are_a_double() -> None:
    seen = [event("get", 200, sandbox="sbx-a", instance=i) for i in ("i-1", "i-2")]
    assert len(verdict.doubles(seen, {"sbx-a": box()})) == 1
    assert verdict.doubles(seen[:1], {"sbx-a": box()}) == []


def test_two_settled_answers_are_a_double() -> None:
    told = [event("create", 201, key="k", sandbox="sbx-a", body=body) for body in ("1", "2")]
    assert len(verdict.doubles(told, {"sbx-a": box()})) == 1
    assert verdict.doubles([told[0], told[0]], {"sbx-a": box()}) == []


def test_two_living_instances_of_one_sandbox_are_twins() -> None:
    one, other = instance(None), {**instance(None), "id": "i-2"}
    assert len(verdict.twins([one, other])) == 1
    assert verdict.twins([one, {**other, "metadata": {"constal-sandbox-id": "sbx-b"}}]) == []


def test_what_lives_at_the_end_or_too_long_or_of_no_record_is_a_leak() -> None:
    def leaks(one: dict[str, Any], down: verdict.Down = up) -> int:
        return len(verdict.lateness([one], {"sbx-a": box()}, down, DUE + 1)[1])

    assert leaks(instance(None)) == 1
    assert leaks(instance(DUE - 10)) == 0
    assert leaks(instance(DUE + 14)) == 0
    assert leaks(instance(DUE + 16)) == 1
    assert leaks(instance(DUE + 34), lambda low, high: 10.0) == 0
    assert leaks(instance(DUE + 36), lambda low, high: 10.0) == 1
    assert leaks(instance(DUE + 40, born=DUE + 30)) == 0  # of a late create
    assert leaks(instance(DUE - 10, of="sbx-unknown")) == 1


def test_lateness_is_of_what_saw_its_deadline_without_the_outage() -> None:
    ledger = [instance(DUE - 10), instance(DUE + 3)]
    late, _ = verdict.lateness(ledger, {"sbx-a": box()}, lambda low, high: 1.0, DUE + 9)
    assert late == [2.0]


def test_an_instance_that_outlives_its_confirmed_destroy_is_a_lie() -> None:
    said = [event("destroy", 204, sandbox="sbx-a")]
    found = {"sbx-a": box()}
    assert len(verdict.lies(said, [instance(DUE - 18)], found)) == 1
    assert len(verdict.lies(said, [instance(None)], found)) == 1
    assert verdict.lies(said, [instance(DUE - 19)], found) == []
    assert verdict.lies(said, [instance(DUE - 5, born=DUE - 10)], found) == []
    assert verdict.lies(said, [instance(DUE)], {"sbx-a": box("failed")}) == []
    assert len(verdict.lies([event("lie", 200, lie="x")], [], found)) == 1
