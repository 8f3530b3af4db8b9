"""The checker of histories finds each broken promise, and accepts what is allowed."""

from __future__ import annotations

import pytest

from tests.sim.history import Broken, Event, check


def create(
    call: int,
    status: int,
    sandbox: str | None = "a",
    *,
    key: str = "k",
    tenant: str = "t",
    **more: str,
) -> list[Event]:
    """A create and its end."""
    body = more.pop("body", "b")
    kind = "ok" if status < 300 else "fail"
    answer = more.pop("answer", str(sandbox)) if status == 201 else ""
    return [
        Event("invoke", "create", call, call, tenant=tenant, key=key, body=body),
        Event(kind, "create", call, call, status=status, sandbox=sandbox, answer=answer, **more),  # type: ignore[arg-type]
    ]


def seen(sandbox: str, state: str, instance: str | None = None) -> Event:
    return Event("seen", "get", 9, sandbox=sandbox, state=state, instance=instance)


def alive(sandbox: str, instance: str) -> Event:
    return Event("alive", "list", 9, sandbox=sandbox, instance=instance)


def destroyed(sandbox: str) -> Event:
    return Event("ok", "destroy", 5, 50, sandbox=sandbox)


GOOD = {
    "a create and its replay": [*create(1, 201), *create(2, 201), seen("a", "running", "i")],
    "accepted, then served": [*create(1, 202), *create(2, 201), alive("a", "i")],
    "a failed one freed the key": [*create(1, 202), seen("a", "failed"), *create(2, 201, "b")],
    "a lost answer stays open": [
        Event("invoke", "create", 1, 1, tenant="t", key="k", body="b"),
        Event("info", "create", 2, 1),
        *create(2, 201),
    ],
    "another body is refused": [*create(1, 201), *create(2, 422, None, body="c", state="reused")],
    "one key, two tenants": [*create(1, 201), *create(2, 201, "b", tenant="u")],
    "destroyed": [*create(1, 201), destroyed("a"), seen("a", "destroyed")],
}
BAD = {
    "I1, I2: two settled answers": [*create(1, 201), *create(2, 201, answer="other")],
    "I1: k has the sandboxes": [*create(1, 202), seen("a", "running"), *create(2, 201, "b")],
    "I2: a has the instances": [*create(1, 201, instance="i"), seen("a", "running", "j")],
    "I3: a is destroyed": [*create(1, 201), seen("a", "destroyed"), alive("a", "i")],
    "I3: .* are alive for k": [*create(1, 201), alive("a", "i"), alive("a", "j")],
    "I4: two bodies": [*create(1, 201), *create(2, 201, body="c")],
    "I4: k was called reused": [*create(1, 201), *create(2, 422, None, state="reused")],
    "I6: a answers two tenants": [*create(1, 201), *create(2, 201, tenant="u")],
    "I18: a was destroyed": [*create(1, 201), destroyed("a"), seen("a", "running")],
}


@pytest.mark.parametrize("history", GOOD.values(), ids=GOOD)
def test_an_allowed_history_is_accepted(history: list[Event]) -> None:
    check(history)


@pytest.mark.parametrize(("fault", "history"), BAD.items(), ids=BAD)
def test_a_broken_promise_is_found(fault: str, history: list[Event]) -> None:
    with pytest.raises(Broken, match=fault):
        check(history)
