"""What of a record a client sees, and what never leaves."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from sandbox_router.lifecycle.answer import answer, rendered
from sandbox_router.lifecycle.sandbox_life import SandboxLife
from sandbox_router.model.record import Outcome
from sandbox_router.model.sandbox import Sandbox, State
from sandbox_router.model.view import sandbox_view, timestamp
from tests.unit.core.build import T, attempt, box, candidate, refused, running, s
from tests.unit.core.chance import lives, quick

FIELDS = {
    *("id", "state", "state_reason", "observed_at", "created_at", "started_at", "expires_at"),
    *(
        "idle_timeout_seconds",
        "idle_counts",
        "labels",
        "image",
        "snapshot_id",
        "size",
        "region",
        "provider",
        "pool_id",
    ),
    *("instance_id", "isolation", "env_names", "cost", "route", "attempts"),
}
ATTEMPT_FIELDS = {"n", "pool_id", "provider", "outcome", "class", "started_at", "ended_at"}
NOBODY: Any = None
LIFE = SandboxLife(NOBODY, NOBODY, NOBODY, "test")
OUTCOMES = {"created", "refused", "unknown", "adopted", "gone"}


def text(record: Sandbox) -> str:
    return json.dumps(sandbox_view(record, T))


@quick
@given(lives())
def test_a_sandbox_shows_exactly_the_contracts_fields(record: Sandbox) -> None:
    view = sandbox_view(record, T)
    assert set(view) == FIELDS
    assert set(view["size"]) == {"vcpu", "memory_gib", "disk_gib", "gpu"}
    for shown in view["attempts"]:
        assert set(shown) == ATTEMPT_FIELDS
        assert shown["outcome"] in OUTCOMES
    for place in view["route"]:
        assert set(place) == {"pool_id", "provider", "price_per_hour", "reasons"}


@pytest.mark.parametrize(
    "hidden",
    [
        {"sealed": b"CANARY"},
        {"key_hash": "CANARY"},
        {"request_hash": "CANARY"},
        {"nonce": "CANARY"},
        {"tenant": "CANARY"},
        {"request_id": "CANARY"},
        {"power_code": "CANARY"},
    ],
    ids=lambda hidden: next(iter(hidden)),
)
def test_what_is_ours_is_not_shown(hidden: dict[str, Any]) -> None:
    assert "CANARY" not in text(running(**hidden))


def test_access_and_identity_of_an_instance_are_not_shown() -> None:
    secret = attempt(1, Outcome.CREATED, access=b"CANARY", identity="CANARY", reference="CANARY")
    assert "CANARY" not in text(box(secret, state=State.RUNNING))


def test_an_attempt_nobody_knows_about_is_shown_as_unknown() -> None:
    for outcome in (Outcome.INTENDED, Outcome.UNKNOWN):
        view = sandbox_view(box(attempt(1, outcome)), T)
        assert view["attempts"][0]["outcome"] == "unknown"


def test_a_refused_attempt_shows_its_class_and_no_code() -> None:
    shown = sandbox_view(box(refused(1, "provider_quota")), T)["attempts"][0]
    assert (shown["outcome"], shown["class"]) == ("refused", "quota")
    assert "provider_quota" not in json.dumps(shown)


def test_before_anybody_serves_there_is_no_provider_no_instance_and_no_cost() -> None:
    view = sandbox_view(box(attempt(1, Outcome.CREATED)), T)
    names = ("provider", "pool_id", "instance_id", "isolation", "cost")
    assert [view[name] for name in names] == [None] * 5


def test_what_serves_is_shown_with_its_cost_so_far() -> None:
    view = sandbox_view(running(running_since=T), s(10))
    assert (view["provider"], view["pool_id"], view["instance_id"]) == ("fake", "alpha", "i-1")
    assert view["cost"] == {
        **{"estimated": 0.01, "currency": "USD", "per_hour": 3.6},
        **{"as_of": "2026-01-01", "source": "x"},
    }


def test_a_cost_nobody_knows_is_null_and_not_zero() -> None:
    view = sandbox_view(running(route=(candidate("alpha", price=None),)), T)
    assert view["cost"] is None
    assert view["route"][0]["price_per_hour"] is None


@pytest.mark.parametrize(
    ("ms", "shown"),
    [
        (None, None),
        (0, "1970-01-01T00:00:00.000Z"),
        (1_893_456_000_007, "2030-01-01T00:00:00.007Z"),
        (999, "1970-01-01T00:00:00.999Z"),
    ],
)
def test_times_are_rfc_3339_in_utc(ms: int | None, shown: str | None) -> None:
    assert timestamp(ms) == shown


@pytest.mark.parametrize(
    ("record", "status", "code"),
    [
        (box(), 202, None),
        (running(), 201, None),
        (running(state=State.PAUSED), 201, None),
        (running(state=State.DESTROYING), 201, None),
        (box(attempt(), state=State.DESTROYING), 409, "destroyed"),
        (box(state=State.DESTROYED), 409, "destroyed"),
        (box(state=State.FAILED, state_reason="no_pool_available"), 503, "no_pool_available"),
        (box(state=State.FAILED, state_reason="provider_failed"), 503, "no_pool_available"),
        (box(state=State.FAILED, state_reason="provider_conflict"), 503, "no_pool_available"),
        (box(state=State.FAILED, state_reason="pool_broken"), 503, "no_pool_available"),
        (box(state=State.FAILED, state_reason="provider_permission"), 403, "provider_permission"),
        (box(state=State.FAILED, state_reason="provider_policy"), 403, "provider_policy"),
        (box(state=State.FAILED, state_reason="provider_rejected"), 422, "provider_rejected"),
        (box(state=State.FAILED, state_reason="unsupported"), 422, "unsupported"),
    ],
)
def test_a_create_answers_from_the_record_alone(
    record: Sandbox, status: int, code: str | None
) -> None:
    result = answer(LIFE, record, T)
    assert result.status == status
    assert json.loads(result.body).get("code") == code


def test_an_answer_is_compact_and_keeps_every_character() -> None:
    assert rendered({"a": "é😀", "b": [1]}) == '{"a":"é😀","b":[1]}'
