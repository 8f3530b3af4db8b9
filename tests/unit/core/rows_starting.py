"""What a starting sandbox calls for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sandbox_router.lifecycle.step import Ask, AwaitReady, Destroy, Doubt, Fail, Find, Serve, Try
from sandbox_router.model.record import Attempt, Outcome
from tests.unit.core.build import EPOCH, attempt, box, candidate, refused, s, wish
from tests.unit.core.rows import ADOPTED, CREATED, EXPIRED, GONE, NO_POOL, Row, going, settling

UNKNOWN = Outcome.UNKNOWN
LATER_TRY = Try(pool_id="beta", round=1)
ONE = (candidate("alpha"),)
SHORT: dict[str, Any] = {"expires_at": s(60), "create_until": s(60)}


def pass_of(n: int, round_: int, *codes: str, **changes: Any) -> tuple[Attempt, ...]:
    """A whole pass of refusals, numbered from n."""
    return tuple(
        refused(n + i, code, round=round_, pool_id=("alpha", "beta")[i], **changes)
        for i, code in enumerate(codes)
    )


FULL, LIMITED = "provider_capacity", "provider_rate_limited"
DONE = (*pass_of(1, 1, FULL, FULL), *pass_of(3, 2, FULL, FULL), *pass_of(5, 3, FULL, FULL))
HASTY = pass_of(1, 1, LIMITED, FULL, retry_after=7)

STARTING = [
    Row("nothing tried yet → the first candidate", box(), 0, Try(pool_id="alpha", round=1)),
    Row("nothing tried, secrets not at hand → waits for the deadline", box(), 0, 600, armed=False),
    Row("nothing tried, secrets not at hand, deadline → fails", box(), 600, NO_POOL, armed=False),
    Row("nothing tried, deadline over → fails, though armed", box(), 600, NO_POOL),
    Row("intended under this claim → asks", box(attempt()), 0, Ask(1)),
    Row("intended under an earlier claim → in doubt", box(attempt(epoch=EPOCH - 1)), 0, Doubt(1)),
    Row("intended, expired → destroying, not asked", box(attempt(), **SHORT), 60, EXPIRED),
    Row("intended, destroy wished → destroying", box(attempt(), wish_destroy=wish()), 0, going()),
    Row("unknown → looked up when it is time", box(settling()), 5, Find(1)),
    Row("unknown, before the look-up → waits", box(settling()), 4.999, 5),
    Row("unknown, idempotent, asked once → asked again", box(settling(idempotent=True)), 5, Ask(1)),
    Row(
        "unknown, idempotent, asked twice → looked up",
        box(settling(idempotent=True, asked=2)),
        5,
        Find(1),
    ),
    Row(
        "unknown, idempotent, secrets not at hand → looked up",
        box(settling(idempotent=True)),
        5,
        Find(1),
        armed=False,
    ),
    Row(
        "unknown, settling, next look late → waits until settled",
        box(settling(settle_until=s(4))),
        3,
        4,
    ),
    Row("unknown, settled, a look due → a last look first", box(settling()), 20, Find(1)),
    Row("unknown, settled → the next candidate", box(settling(look_at=s(21))), 20, LATER_TRY),
    Row(
        "unknown, settled, secrets not at hand → looked up",
        box(settling()),
        20,
        Find(1),
        armed=False,
    ),
    Row(
        "unknown, settled, last candidate → fails",
        box(settling(look_at=s(21)), route=ONE),
        20,
        NO_POOL,
    ),
    Row(
        "unknown, last candidate, not settled → looked up", box(settling(), route=ONE), 19, Find(1)
    ),
    Row(
        "unknown, create deadline → fails",
        box(settling(look_at=s(601), settle_until=s(700))),
        600,
        NO_POOL,
    ),
    Row("unknown, expired → destroying", box(settling(), **SHORT), 60, EXPIRED),
    Row(
        "unknown, destroy wished → destroying",
        box(settling(), wish_destroy=wish("client", s(3))),
        3,
        going(),
    ),
    Row("created and ready → serves", box(attempt(1, CREATED)), 0, Serve(1)),
    Row("adopted and ready → serves", box(attempt(1, ADOPTED)), 0, Serve(1)),
    Row(
        "created, not ready → looked at when it is time",
        box(attempt(1, CREATED, ready=False), step_at=s(2)),
        2,
        AwaitReady(1),
    ),
    Row(
        "created, not ready, before the look → waits",
        box(attempt(1, CREATED, ready=False), step_at=s(2)),
        1.9,
        2,
    ),
    Row(
        "created, not ready at the create deadline → fails",
        box(attempt(1, CREATED, ready=False), step_at=s(601)),
        600,
        NO_POOL,
    ),
    Row(
        "created and ready at the create deadline → serves", box(attempt(1, CREATED)), 600, Serve(1)
    ),
    Row(
        "created, expired → destroying, not served", box(attempt(1, CREATED), **SHORT), 60, EXPIRED
    ),
    Row(
        "created, destroy wished → destroying, not served",
        box(attempt(1, CREATED), wish_destroy=wish()),
        0,
        going(),
    ),
    Row("gone before it was ready → the next candidate", box(attempt(1, GONE)), 0, LATER_TRY),
    Row(
        "gone before it was ready, last candidate → fails",
        box(attempt(1, GONE), route=ONE),
        0,
        NO_POOL,
    ),
    *[
        Row(
            f"refused for {code.removeprefix('provider_')} → the next candidate",
            box(refused(code=code)),
            0,
            LATER_TRY,
        )
        for code in (
            FULL,
            LIMITED,
            "provider_quota",
            "provider_region",
            "provider_outage",
            "provider_unsupported",
            "pool_broken",
        )
    ],
    *[
        Row(
            f"refused for {code.removeprefix('provider_')} → fails, asks nobody else",
            box(refused(code=code)),
            0,
            Fail(1, code=code),
        )
        for code in (
            "provider_permission",
            "provider_policy",
            "provider_rejected",
            "provider_conflict",
            "provider_refused",
        )
    ],
    Row(
        "refused with a code nobody knows → fails, asks nobody else",
        box(refused(code="provider_new")),
        0,
        Fail(1, code="provider_new"),
    ),
    Row(
        "refused, secrets not at hand → waits for the deadline", box(refused()), 0, 600, armed=False
    ),
    Row("refused, create deadline → fails", box(refused()), 600, NO_POOL),
    Row("refused, destroy wished → destroying", box(refused(), wish_destroy=wish()), 0, going()),
    Row("the first pass refused → waits for the back-off", box(*pass_of(1, 1, FULL, FULL)), 0, 2),
    Row(
        "the first pass refused, back-off over → the second pass",
        box(*pass_of(1, 1, FULL, FULL)),
        2,
        Try(pool_id="alpha", round=2),
    ),
    Row("the second pass refused → a longer back-off", box(*DONE[:4]), 2, 4),
    Row(
        "the second pass refused, back-off over → the third",
        box(*DONE[:4]),
        4,
        Try(pool_id="alpha", round=3),
    ),
    Row("in the second pass → its next candidate", box(*DONE[:3]), 0, Try(pool_id="beta", round=2)),
    Row("the third pass refused → fails", box(*DONE), 0, NO_POOL),
    Row("a pass refused with Retry-After → waits that long", box(*HASTY), 0, 7),
    Row(
        "a pass refused with Retry-After, waited → the next pass",
        box(*HASTY),
        7,
        Try(pool_id="alpha", round=2),
    ),
    Row(
        "two Retry-After → the smaller counts",
        box(refused(1, LIMITED, retry_after=9), refused(2, LIMITED, retry_after=3)),
        0,
        3,
    ),
    Row(
        "Retry-After of one pool only → it counts",
        box(refused(1, FULL), refused(2, LIMITED, retry_after=3)),
        0,
        3,
    ),
    Row(
        "Retry-After beyond the create deadline → fails at once",
        box(*pass_of(1, 1, LIMITED, LIMITED, retry_after=600)),
        0,
        NO_POOL,
    ),
    Row(
        "Retry-After counts from the last refusal",
        box(refused(1, LIMITED, retry_after=3), replace(refused(2), ended_at=s(2))),
        2,
        5,
    ),
    Row(
        "a pass with a final refusal → no second pass",
        box(*pass_of(1, 1, FULL, "provider_quota")),
        0,
        NO_POOL,
    ),
    Row(
        "a pass with a broken pool → no second pass",
        box(*pass_of(1, 1, "pool_broken", FULL)),
        0,
        NO_POOL,
    ),
    Row(
        "every pool says unsupported → fails so",
        box(*pass_of(1, 1, "provider_unsupported", "provider_unsupported")),
        0,
        Fail(code="unsupported"),
    ),
    Row(
        "unsupported here, full there → nobody could",
        box(*pass_of(1, 1, "provider_unsupported", FULL)),
        0,
        NO_POOL,
    ),
    Row(
        "unknown, settled, then refused → the second pass after the back-off",
        box(settling(look_at=s(30)), refused(2)),
        2,
        Try(pool_id="alpha", round=2),
    ),
    Row(
        "unknown debt, then refused → the debt is looked up in between",
        box(settling(look_at=s(1)), refused(2)),
        1,
        Find(1),
    ),
    Row(
        "unknown debt, then unsupported → not called unsupported",
        box(settling(), refused(2, "provider_unsupported")),
        0,
        NO_POOL,
    ),
    Row(
        "a debt that appears while another is asked → destroyed",
        box(attempt(1, ADOPTED), attempt(2, UNKNOWN, look_at=s(9), settle_until=s(9))),
        0,
        Destroy(1),
    ),
    Row(
        "a debt that appears while another serves as next → the next serves first",
        box(attempt(1, ADOPTED), attempt(2, CREATED)),
        0,
        Serve(2),
    ),
]
