"""The table of states and edges, attempts, and the names by which instances are ours."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox_router.lifecycle.sandbox_moves import shifted
from sandbox_router.model.naming import account, identity, identity_tags
from sandbox_router.model.record import Outcome
from sandbox_router.model.sandbox import EDGES, State
from sandbox_router.model.spec import Isolation
from tests.unit.core.build import T, attempt, box, running, s
from tests.unit.core.chance import quick

TERMINAL = {State.DESTROYED, State.FAILED, State.LOST}
TEXT = st.text(max_size=20)


def reachable(start: State) -> set[State]:
    found, todo = {start}, [start]
    while todo:
        for state in EDGES[todo.pop()] - found:
            found.add(state)
            todo.append(state)
    return found


def test_every_state_has_its_edges_and_can_be_reached_from_starting() -> None:
    assert set(EDGES) == set(State)
    assert reachable(State.STARTING) == set(State)


@pytest.mark.parametrize("state", State)
def test_a_terminal_state_has_no_way_out_and_every_other_state_has_one(state: State) -> None:
    assert state.terminal == (state in TERMINAL) == (not EDGES[state])


@pytest.mark.parametrize("state", sorted(set(State) - TERMINAL - {State.DESTROYING}))
def test_a_sandbox_can_be_destroyed_from_every_state(state: State) -> None:
    assert State.DESTROYING in EDGES[state]
    assert State.DESTROYED in reachable(state)


def test_destroying_leads_to_destroyed_and_nowhere_else() -> None:
    assert EDGES[State.DESTROYING] == {State.DESTROYED}


def test_nothing_starts_twice_and_nothing_runs_before_it_started() -> None:
    assert not any(State.STARTING in edges for edges in EDGES.values())
    assert State.PAUSED not in EDGES[State.STARTING]


def test_isolation_is_ranked_process_container_gvisor_microvm() -> None:
    ranks = [Isolation.PROCESS, Isolation.CONTAINER, Isolation.GVISOR, Isolation.MICROVM]
    for i, have in enumerate(ranks):
        assert [have.satisfies(least) for least in ranks] == [j <= i for j in range(4)]
        assert have.satisfies(None)


@pytest.mark.parametrize(
    ("outcome", "is_open"),
    [
        (Outcome.INTENDED, True),
        (Outcome.CREATED, True),
        (Outcome.UNKNOWN, True),
        (Outcome.ADOPTED, True),
        (Outcome.REFUSED, False),
        (Outcome.GONE, False),
    ],
)
def test_an_attempt_is_open_until_it_is_refused_or_gone(outcome: Outcome, is_open: bool) -> None:
    assert attempt(1, outcome).open == is_open
    assert box(attempt(1, outcome)).settled != is_open


def test_an_attempt_is_alive_only_with_an_instance_not_confirmed_gone() -> None:
    assert attempt(1, Outcome.CREATED).alive
    assert not attempt(1, Outcome.UNKNOWN).alive
    assert not attempt(1, Outcome.GONE, instance_id="i-1").alive


@pytest.mark.parametrize(
    ("code", "klass"),
    [(None, None), ("provider_capacity", "capacity"), ("provider_of_tomorrow", "internal")],
)
def test_an_attempt_shows_the_class_of_its_code_and_of_an_unknown_one_that_it_is_internal(
    code: str | None, klass: str | None
) -> None:
    assert attempt(1, Outcome.UNKNOWN, code=code).klass == klass


def test_an_attempt_replaces_its_number_or_is_appended() -> None:
    one = box(attempt(1), attempt(2)).with_attempt(attempt(1, Outcome.GONE))
    assert [a.outcome for a in one.attempts] == [Outcome.GONE, Outcome.INTENDED]
    assert [a.n for a in one.with_attempt(attempt(3)).attempts] == [1, 2, 3]


def test_leaving_starting_erases_the_sealed_secrets() -> None:
    start = box(attempt(), sealed=b"x")
    for to in EDGES[State.STARTING]:
        assert shifted(start, to, None, T).sealed is None


def test_the_meter_runs_only_while_it_runs() -> None:
    start = running(running_since=T)
    paused = shifted(start, State.PAUSED, "client", s(10))
    again = shifted(paused, State.RUNNING, "client", s(40))
    ended = shifted(again, State.DESTROYING, "client", s(45))
    assert [b.running_ms(s(100)) for b in (start, paused, again, ended)] == [
        *(100_000, 10_000, 70_000, 15_000)
    ]


def test_a_terminal_state_notes_when_it_ended() -> None:
    assert shifted(box(), State.FAILED, "x", s(3)).ended_at == s(3)
    assert shifted(running(), State.DESTROYING, "x", s(3)).ended_at is None


@quick
@given(TEXT, TEXT, st.integers(1, 999))
def test_an_identity_is_forty_characters_a_vendor_label_can_hold(
    deployment: str, sandbox_id: str, n: int
) -> None:
    assert re.fullmatch(r"r-[a-z2-7]{38}", identity(deployment, sandbox_id, n))
    assert re.fullmatch(r"[a-z2-7]{52}", account(deployment))


def test_another_attempt_sandbox_or_deployment_has_another_identity() -> None:
    names = [("d", "s", 1), ("d", "s", 2), ("d", "t", 1), ("e", "s", 1), ("ds", "", 1)]
    found = {identity(*name) for name in names}
    assert len(found) == len(names)
    assert account("d") != account("e")


def test_an_identity_never_changes() -> None:
    assert identity("deployment-1", "sbx-a", 1) == "r-" + IDENTITY
    assert account("deployment-1") == ACCOUNT


def test_the_identity_tags_are_the_contracts_five() -> None:
    record = replace(box(attempt(2, identity="r-2")), tenant="acme", namespace="team")
    assert identity_tags("deployment-1", record, record.attempts[0]) == {
        "constal-tenant": "acme",
        "constal-namespace": "team",
        "constal-account": account("deployment-1"),
        "constal-sandbox-id": "sbx-a",
        "constal-sandbox": "r-2",
    }


IDENTITY = "motonpul7dzzwunxs637qcjsy5bkp6ovkhxuyl"
ACCOUNT = "numh4pwj3r3geaowvogb6h52k45566q3g2i3zlele7nhoz3tcw5a"
