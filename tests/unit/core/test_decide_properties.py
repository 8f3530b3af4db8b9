"""What holds of the agenda of any record at all."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from sandbox_router.lifecycle.sandbox_agenda import agenda, decide, due
from sandbox_router.lifecycle.step import Ask, Effect, Fail, Serve, Shift, Try
from sandbox_router.model.record import Outcome
from sandbox_router.model.sandbox import EDGES, Sandbox, State
from tests.unit.core.build import EPOCH
from tests.unit.core.chance import TIMES, lives, quick


@quick
@given(lives(), st.booleans(), TIMES)
def test_nothing_is_done_before_it_is_due_and_something_always_is_then(
    record: Sandbox, armed: bool, now: int
) -> None:
    at = due(record, armed=armed)
    step = decide(record, now, armed=armed)
    assert (step is None) == (at is None or now < at)
    if at is not None:
        assert decide(record, at - 1, armed=armed) is None
        assert decide(record, at, armed=armed) is not None


@quick
@given(lives(), st.booleans())
def test_no_step_moves_along_an_edge_the_table_forbids(record: Sandbox, armed: bool) -> None:
    for _, step in agenda(record, armed=armed):
        if isinstance(step, Shift):
            assert step.to in EDGES[record.state]
        if isinstance(step, Serve):
            assert State.RUNNING in EDGES[record.state]
        if isinstance(step, Fail):
            assert State.FAILED in EDGES[record.state]


@quick
@given(lives(), st.booleans())
def test_a_finished_record_is_never_due_and_an_unfinished_one_always_is(
    record: Sandbox, armed: bool
) -> None:
    never = record.state.terminal and record.settled
    assert (due(record, armed=armed) is None) == never


@quick
@given(lives(), st.booleans(), TIMES)
def test_what_the_provider_is_asked_is_about_an_attempt_that_exists(
    record: Sandbox, armed: bool, now: int
) -> None:
    step = decide(record, now, armed=armed)
    if isinstance(step, Effect):
        assert 1 <= step.n <= len(record.attempts)


@quick
@given(lives(), TIMES)
def test_without_the_secrets_nothing_new_is_asked(record: Sandbox, now: int) -> None:
    for at, step in agenda(record, armed=False):
        assert not isinstance(step, Try)
        if isinstance(step, Ask):  # only what this very claim has intended while it was armed
            tried = record.attempts[step.n - 1]
            assert (tried.outcome, tried.epoch) == (Outcome.INTENDED, record.epoch)
        assert at is not None


@quick
@given(lives(), TIMES)
def test_nothing_is_created_once_the_create_deadline_is_over(record: Sandbox, now: int) -> None:
    late = replace(record, create_until=min(record.create_until, now))
    assert not isinstance(decide(late, now, armed=True), Try)


@quick
@given(lives(), st.booleans(), TIMES)
def test_a_later_claim_sends_no_intent_of_an_earlier_one(
    record: Sandbox, armed: bool, now: int
) -> None:
    step = decide(replace(record, epoch=EPOCH + 1), now, armed=armed)
    if isinstance(step, Ask):
        assert record.attempts[step.n - 1].outcome is Outcome.UNKNOWN


@quick
@given(lives(), st.booleans(), TIMES)
def test_an_ended_deadline_or_a_wish_to_destroy_comes_before_everything_else(
    record: Sandbox, armed: bool, now: int
) -> None:
    ended = replace(record, expires_at=min(record.expires_at, now))
    if State.DESTROYING in EDGES[record.state]:
        step = decide(ended, now, armed=armed)
        assert isinstance(step, Shift)
        assert step.to is State.DESTROYING
