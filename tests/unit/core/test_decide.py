"""The table that is the specification of a sandbox's life: record and moment → what is done."""

from __future__ import annotations

import pytest

from sandbox_router.lifecycle.sandbox_agenda import decide, due
from sandbox_router.lifecycle.step import (
    Ask,
    AwaitReady,
    Destroy,
    Doubt,
    Extend,
    Fail,
    Find,
    Forgo,
    Look,
    Moot,
    Pause,
    Resume,
    Serve,
    Shift,
    Step,
    Try,
)
from sandbox_router.model.record import Outcome
from sandbox_router.model.sandbox import State
from tests.unit.core.build import s
from tests.unit.core.rows import Row
from tests.unit.core.rows_living import ENDING, LIVING
from tests.unit.core.rows_starting import STARTING

TABLE = [*STARTING, *LIVING, *ENDING]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_the_record_calls_for(row: Row) -> None:
    step, at = decide(row.record, s(row.at), armed=row.armed), due(row.record, armed=row.armed)
    if isinstance(row.then, Step):
        assert step == row.then
        assert at is not None
        assert at <= s(row.at)
    else:
        assert step is None
        assert at == (None if row.then is None else s(row.then))


def test_the_table_covers_every_state_and_every_outcome() -> None:
    assert {row.record.state for row in TABLE} == set(State)
    assert {a.outcome for row in TABLE for a in row.record.attempts} == set(Outcome)
    assert len({row.name for row in TABLE}) == len(TABLE) >= 70


def test_the_table_takes_every_step() -> None:
    kinds = {type(row.then) for row in TABLE if isinstance(row.then, Step)}
    effects = {Ask, AwaitReady, Destroy, Extend, Find, Look, Pause, Resume}
    assert kinds == effects | {Doubt, Fail, Forgo, Moot, Serve, Shift, Try}
