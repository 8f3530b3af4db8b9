"""The failure tree: every class a problem type of its own, and nothing a client must not see."""

from __future__ import annotations

import re

import pytest

from sandbox_router.model import failure as module
from sandbox_router.model.failure import (
    BY_CODE,
    BrokenPool,
    Conflicted,
    Failure,
    Invalid,
    Outage,
    ProviderFailure,
    Refused,
    Unknown,
    tree,
)
from sandbox_router.model.failure_class import Effect, FailureClass
from sandbox_router.model.problem import TYPE_BASE, problem

ALL = tree()
CLOSED = {
    *("capacity", "rate_limited", "quota", "region", "outage", "unsupported", "invalid"),
    *("permission", "policy", "conflict", "not_found", "unknown_outcome", "internal"),
}
MEMBERS = {
    *("type", "title", "status", "detail", "code", "class", "retryable", "outcome"),
    "request_id",
}
ELSEWHERE = {
    *("capacity", "rate_limited", "quota", "region", "outage", "unsupported"),
}


def test_the_classes_of_failure_are_the_contracts_closed_list() -> None:
    assert {str(klass) for klass in FailureClass} == CLOSED


def test_every_failure_has_a_code_of_its_own() -> None:
    codes = [cls.code for cls in ALL if cls is not Failure]  # the root is `internal` to the client
    assert len(codes) == len(set(codes))
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)*", code) for code in codes)
    assert set(BY_CODE) == {cls.code for cls in ALL}


@pytest.mark.parametrize("cls", ALL, ids=lambda cls: cls.__name__)
def test_every_failure_is_a_whole_problem_type(cls: type[Failure]) -> None:
    assert 400 <= cls.status <= 599
    assert cls.klass in FailureClass
    assert cls.effect in Effect
    assert cls.title
    assert not cls.title.endswith(".")
    assert cls.__doc__


@pytest.mark.parametrize("cls", ALL, ids=lambda cls: cls.__name__)
def test_the_drawn_tree_names_every_failure_under_its_parent(cls: type[Failure]) -> None:
    drawn = (module.__doc__ or "").split("A class is a problem type")[0]
    assert re.search(rf"\b{cls.__name__}\b", drawn)


@pytest.mark.parametrize("cls", ALL, ids=lambda cls: cls.__name__)
def test_every_failure_becomes_a_problem_document(cls: type[Failure]) -> None:
    document = problem(cls(), "req-1")
    assert set(document) == MEMBERS
    assert document["type"] == TYPE_BASE + cls.code.replace("_", "-")
    assert (document["status"], document["code"]) == (cls.status, cls.code)
    assert document["class"] == cls.klass
    assert document["detail"] == document["title"] == cls.title
    assert (document["retryable"], document["outcome"]) == (cls.retryable, cls.effect)
    assert document["request_id"] == "req-1"


def test_a_problem_names_the_fields_and_the_attempts() -> None:
    failure = Invalid("no", fields=(("size", "is odd"),))
    document = problem(failure, "req-1", [{"n": 1}])
    assert document["detail"] == "no"
    assert document["field_errors"] == [{"path": "size", "reason": "is odd"}]
    assert document["attempts"] == [{"n": 1}]


def test_a_problem_of_a_create_that_tried_nobody_says_so() -> None:
    assert problem(Failure(), "req-1", [])["attempts"] == []


@pytest.mark.parametrize("cls", tree(ProviderFailure), ids=lambda cls: cls.__name__)
def test_another_pool_is_asked_only_after_the_listed_refusals(cls: type[ProviderFailure]) -> None:
    listed = issubclass(cls, Refused) and cls is not Refused and cls.klass in ELSEWHERE
    assert cls.elsewhere == listed


@pytest.mark.parametrize("cls", tree(ProviderFailure), ids=lambda cls: cls.__name__)
def test_what_time_mends_may_be_tried_again(cls: type[ProviderFailure]) -> None:
    if cls.temporary:
        assert cls.retryable
        assert issubclass(cls, Refused)


@pytest.mark.parametrize("cls", tree(Refused), ids=lambda cls: cls.__name__)
def test_a_refusal_has_surely_no_effect(cls: type[Refused]) -> None:
    assert cls.effect is Effect.NONE


@pytest.mark.parametrize("cls", tree(Unknown), ids=lambda cls: cls.__name__)
def test_a_lost_answer_says_that_the_effect_is_unknown_and_is_not_to_be_repeated(
    cls: type[Unknown],
) -> None:
    assert cls.effect is Effect.UNKNOWN
    assert not cls.retryable
    assert not issubclass(cls, Refused)


def test_our_broken_pool_is_never_a_question_of_the_clients_permission() -> None:
    assert BrokenPool.klass is FailureClass.OUTAGE
    assert BrokenPool.status == 503
    assert not BrokenPool.temporary


def test_an_outage_and_a_conflict_may_pass() -> None:
    assert Outage.temporary
    assert Conflicted.temporary


def test_a_failure_says_no_more_than_it_was_given() -> None:
    failure = Unknown(retry_after=3)
    assert str(failure) == Unknown.title
    assert repr(failure) == f"Unknown({Unknown.title!r})"
    assert failure.retry_after == 3
