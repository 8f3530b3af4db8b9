"""What a provider's answer means: the failure table row by row, strict JSON, Retry-After."""

from __future__ import annotations

import json
import time
from email.utils import formatdate
from typing import Any

import pytest

from adapters.providers.answer import DEFAULTS, Verdicts, parse, retry_after
from adapters.providers.e2b import envd, wire
from sandbox_router.model import failure as fail
from sandbox_router.model.failure import ProviderFailure

C, R, K, A, P = wire.CREATES, wire.RESTORES, wire.CALLS, envd.CALLS, envd.PATHS
NONE = Verdicts()
FULL = "you have reached the maximum number of concurrent E2B sandboxes (20)"
TABLE: list[tuple[Verdicts, int, dict[str, Any], type[ProviderFailure]]] = [
    # any provider, unless it says otherwise
    (NONE, 302, {}, fail.ProtocolBroken),
    (NONE, 202, {}, fail.ProtocolBroken),
    (NONE, 400, {}, fail.Rejected),
    (NONE, 401, {}, fail.BrokenPool),
    (NONE, 402, {}, fail.Quota),
    (NONE, 403, {}, fail.Permission),
    (NONE, 404, {}, fail.Gone),
    (NONE, 408, {}, fail.Unknown),
    (NONE, 409, {}, fail.Conflicted),
    (NONE, 410, {}, fail.Gone),
    (NONE, 418, {}, fail.Rejected),
    (NONE, 422, {}, fail.Rejected),
    (NONE, 429, {}, fail.RateLimited),
    (NONE, 500, {}, fail.Unknown),
    (NONE, 502, {}, fail.Unknown),
    (NONE, 503, {}, fail.Unknown),
    (NONE, 504, {}, fail.Unknown),
    (NONE, 599, {}, fail.Unknown),
    # E2B: create
    (C, 503, {"error_code": "sandbox_capacity_unavailable"}, fail.Capacity),
    (C, 503, {"error_code": "sandbox_no_compatible_node"}, fail.Capacity),
    (C, 504, {"error_code": "sandbox_placement_timeout"}, fail.Capacity),
    (C, 500, {"error_code": "sandbox_create_refused"}, fail.Rejected),
    (C, 500, {"error_code": "sandbox_create_failed"}, fail.Unknown),
    (C, 500, {"error_code": "internal_server_error"}, fail.Unknown),
    (C, 503, {"error_code": "brand_new_code"}, fail.Unknown),
    (C, 409, {"error_code": "idempotency_in_progress"}, fail.Unknown),
    (C, 422, {"error_code": "idempotency_in_progress"}, fail.Unknown),
    (C, 409, {"error_code": "idempotency_outcome_unknown"}, fail.Unknown),
    (C, 422, {"error_code": "idempotency_request_mismatch"}, fail.Conflicted),
    (C, 409, {"error_code": "idempotency_request_mismatch"}, fail.Conflicted),
    (C, 429, {"message": FULL}, fail.Quota),
    (C, 429, {"message": "Rate limit exceeded"}, fail.RateLimited),
    (C, 403, {"message": "the team is blocked"}, fail.Permission),
    (C, 403, {"message": "not allowed by the acceptable use policy"}, fail.Policy),
    (C, 403, {"error_code": "policy_violation", "message": "no"}, fail.Policy),
    (C, 401, {"message": "invalid API key"}, fail.BrokenPool),
    (C, 404, {"message": "template not found"}, fail.Rejected),
    (C, 410, {"message": "template not found"}, fail.Rejected),
    (R, 404, {"message": "template not found"}, fail.CaptureGone),
    (R, 410, {"message": "snapshot_not_found"}, fail.CaptureGone),
    (R, 400, {}, fail.Rejected),
    (R, 403, {}, fail.Permission),
    (R, 503, {"error_code": "sandbox_capacity_unavailable"}, fail.Capacity),
    (C, 400, {"message": "Timeout cannot be greater than 1 hours"}, fail.Rejected),
    # E2B: an instance that exists
    (K, 404, {}, fail.Gone),
    (K, 409, {"message": "is being paused"}, fail.Conflicted),
    (K, 503, {"error_code": "sandbox_capacity_unavailable"}, fail.Capacity),
    (K, 500, {"error_code": "internal_server_error"}, fail.Unknown),
    # E2B: the agent inside, and the proxy before it
    (A, 502, {"message": "The sandbox was not found", "code": 502}, fail.Gone),
    (A, 502, {"message": "The sandbox is running but port is not open"}, fail.Outage),
    (A, 502, {"message": "bad gateway"}, fail.Unknown),
    (A, 401, {"code": 401, "message": "no such user"}, fail.Permission),
    (A, 401, {"code": "unauthenticated"}, fail.Permission),
    (A, 403, {"code": "permission_denied"}, fail.Permission),
    (A, 400, {"code": "invalid_argument"}, fail.Rejected),
    (A, 400, {"code": "failed_precondition"}, fail.Rejected),
    (A, 501, {"code": "unimplemented"}, fail.PoolUnsupported),
    (A, 429, {"code": "resource_exhausted"}, fail.RateLimited),
    (A, 503, {"code": "unavailable"}, fail.Unknown),
    (A, 500, {"code": "internal"}, fail.Unknown),
    (P, 404, {"code": 404, "message": "path '/x' does not exist"}, fail.FileMissing),
    (P, 404, {"code": "not_found"}, fail.FileMissing),
    (P, 400, {"message": "path '/home' is a directory", "code": 400}, fail.Rejected),
    (P, 507, {"message": "not enough disk space available", "code": 507}, fail.Rejected),
    (P, 502, {"message": "The sandbox was not found", "code": 502}, fail.Gone),
]


@pytest.mark.parametrize(("verdicts", "status", "body", "kind"), TABLE)
def test_an_answer_means_one_class_of_failure(
    verdicts: Verdicts, status: int, body: dict[str, Any], kind: type[ProviderFailure]
) -> None:
    found = verdicts.failure(status, {}, json.dumps(body).encode())
    assert type(found) is kind
    assert found.detail == f"{kind.title} (status {status})"


@pytest.mark.parametrize(
    "verdicts", [NONE, C, K, A, P], ids=["-", "create", "call", "envd", "path"]
)
def test_every_row_of_a_table_is_in_this_table(verdicts: Verdicts) -> None:
    reached: set[tuple[int | None, str | None]] = set()
    for used, status, body, _ in TABLE:
        if used is NONE or used.code is verdicts.code:
            code = verdicts.code(status, body)
            reached |= {(status, code), (None, code), (status, None)}
    assert {*verdicts.rows, *DEFAULTS} - reached == set()


def test_a_page_of_html_is_judged_by_its_status() -> None:
    assert type(C.failure(503, {}, b"<html>Service Unavailable</html>")) is fail.Unknown
    assert type(C.failure(401, {}, b"[]")) is fail.BrokenPool


def test_the_words_of_a_provider_do_not_enter_a_failure() -> None:
    body = json.dumps({"message": "CANARY", "error_code": "CANARY-code"}).encode()
    found = C.failure(400, {}, body)
    assert "CANARY" not in repr((found, found.args, found.detail, vars(found)))


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("7", 7),
        (" 7 ", 7),
        ("0", 1),
        ("999999999999999999999", 600),
        ("-5", None),
        ("1.5", None),
        ("٣", None),
        ("", None),
        ("soon", None),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 1),
        ("Wed, 21 Oct 9999 07:28:00 GMT", 600),
        ("Wed, 99 Oct 2015 07:28:00 GMT", None),
    ],
)
def test_retry_after_is_read_and_kept_within_bounds(value: str | None, seconds: int | None) -> None:
    assert retry_after(value) == seconds


def test_a_date_in_retry_after_counts_from_now() -> None:
    found = retry_after(formatdate(time.time() + 30, usegmt=True))
    assert found is not None
    assert 25 <= found <= 31


def test_only_a_failure_that_passes_says_when_to_ask_again() -> None:
    headers = {"retry-after": "9"}
    assert NONE.failure(429, headers, b"").retry_after == 9
    assert NONE.failure(403, headers, b"").retry_after is None


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"nonsense",
        b"<html></html>",
        b"[]",
        b"null",
        b'{"a": NaN}',
        b'{"a": Infinity}',
        b'{"a": "\\ud800"}',
        b'{"\\ud800": 1}',
        b'{"a": ' + b"9" * 5000 + b"}",
        b'{"a":' * 40 + b"1" + b"}" * 40,
        b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        b"\xff\xfe{}",
    ],
)
def test_json_that_is_not_sound_is_refused(body: bytes) -> None:
    with pytest.raises(fail.ProtocolBroken):
        parse(body, dict)


def test_json_of_the_expected_kind_is_read() -> None:
    assert parse('{"a": [1, {"b": "ü"}]}'.encode(), dict) == {"a": [1, {"b": "ü"}]}
    assert parse(b"[1]", list) == [1]
