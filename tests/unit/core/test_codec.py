"""Records in storage and back, between older and newer readers."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from enum import Enum
from typing import Any

import pytest
from hypothesis import given, settings

from sandbox_router.model.record import Attempt, Outcome
from sandbox_router.model.sandbox import Sandbox, State
from sandbox_router.store.codec import decode, encode
from sandbox_router.store.items import (
    FACTS,
    attempt_key,
    record_item,
    record_key,
    record_of,
    record_update,
)
from sandbox_router.table import ALWAYS, PK, SK
from tests.unit.core.build import T, attempt, box, running, wish
from tests.unit.core.chance import quick, records

REQUIRED = ("id", "tenant", "spec", "created_at", "expires_at", "create_until", "route")


def plain(value: Any) -> bool:
    """Is it storage's language: no tuple, enum, float, None, or object of ours?"""
    if isinstance(value, Enum):
        return False
    if isinstance(value, dict):
        return all(isinstance(k, str) and plain(v) for k, v in value.items())
    if isinstance(value, list):
        return all(plain(v) for v in value)
    return type(value) in (str, int, bool, bytes)


def items_of(record: Sandbox) -> list[dict[str, Any]]:
    pk, sk = record_key(record.id)
    items: list[dict[str, Any]] = [{**record_item(record), PK: pk, SK: sk}]
    for each in record.attempts:
        pk, sk = attempt_key(record.id, each.n)
        items.append({**encode(each), PK: pk, SK: sk})
    return items


@settings(quick, max_examples=60)
@given(records())
def test_a_record_is_stored_in_plain_values_and_comes_back_as_it_was(record: Sandbox) -> None:
    stored = encode(record)
    assert plain(stored)
    assert decode(Sandbox, stored) == record
    assert record_of(Sandbox, items_of(record)) == record


def test_attempts_without_their_record_are_nobody() -> None:
    assert record_of(Sandbox, [{**encode(attempt()), SK: "B#001"}]) is None


def test_what_a_newer_writer_added_is_ignored() -> None:
    stored = encode(running(wish_power=wish("pause")))
    stored["mood"] = "good"
    stored["spec"]["colour"] = "red"
    stored["wish_power"]["urgency"] = 3
    assert decode(Sandbox, stored) == running(wish_power=wish("pause"))


def test_what_an_older_writer_did_not_know_takes_its_default() -> None:
    stored = {k: v for k, v in encode(box()).items() if k in (*REQUIRED, "request_id")}
    known = decode(Sandbox, stored)
    assert (known.state, known.epoch, known.attempts) == (State.STARTING, 0, ())


@pytest.mark.parametrize("name", REQUIRED)
def test_a_record_without_what_it_cannot_do_without_is_not_decoded(name: str) -> None:
    stored = encode(box())
    del stored[name]
    with pytest.raises(KeyError):
        decode(Sandbox, stored)


def test_a_state_nobody_knows_is_not_guessed() -> None:
    with pytest.raises(ValueError, match="asleep"):
        decode(Sandbox, {**encode(box()), "state": "asleep"})


@dataclass(frozen=True)
class Needy:
    """A required field that may be None."""

    name: str | None


def test_a_required_field_that_may_be_none_comes_back_as_none() -> None:
    assert encode(Needy(None)) == {}
    assert decode(Needy, {}) == Needy(None)
    assert decode(Needy, {"name": None}) == Needy(None)


def test_no_field_of_a_record_turns_none_into_something_else() -> None:
    """None is left out, so a field that may be None must have None as its default."""
    for cls in (Sandbox, Attempt):
        for each in fields(cls):
            if "None" in str(each.type):
                assert each.default is None, f"{cls.__name__}.{each.name}"


def test_facts_are_attributes_of_an_attempt_and_none_of_a_record() -> None:
    mine = {each.name for each in fields(Attempt)}
    assert mine >= FACTS
    assert Outcome.CREATED.value == encode(attempt(1, Outcome.CREATED))["outcome"]
    assert record_item(box(attempt(), due_at=T)).keys().isdisjoint(FACTS)


def test_the_copy_for_lists_is_current_and_opens_no_instance() -> None:
    was, is_ = box(attempt(access=b"sealed")), box(attempt(1, Outcome.CREATED, access=b"sealed"))
    first: Any = record_item(was)["attempts"]
    saved: Any = record_update(was, is_, ALWAYS).set["attempts"]
    assert [item["outcome"] for item in (*first, *saved)] == ["intended", "created"]
    assert not [item for item in (*first, *saved) if "access" in item]
    assert "attempts" not in record_update(is_, replace(is_, due_at=T), ALWAYS).set
