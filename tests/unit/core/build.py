"""Small records for unit tests: a sandbox of two candidates, created at T, with what a test names.

Times are milliseconds; `s(5)` is five seconds after T.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sandbox_router.model.capability import (
    LabelLimits,
    Lifetime,
    Naming,
    Profile,
    Timeouts,
    UnitPrice,
)
from sandbox_router.model.money import Price
from sandbox_router.model.pool import Pool, Prepared
from sandbox_router.model.record import Attempt, Outcome, Wish
from sandbox_router.model.sandbox import Candidate, Sandbox, State
from sandbox_router.model.size import Shape
from sandbox_router.model.spec import Isolation, Spec

T = 1_000_000_000
EPOCH = 3
"""The epoch a built record is claimed under."""
SHAPE = Shape.of(2, 4)


def s(seconds: float) -> int:
    """This long after T."""
    return T + round(seconds * 1000)


def candidate(pool_id: str, **changes: Any) -> Candidate:
    """A place on the route."""
    made = Candidate(pool_id, "fake", "base", SHAPE, Price(3_600_000, "USD", "2026-01-01", "x"))
    return replace(made, **changes)


def attempt(n: int = 1, outcome: Outcome = Outcome.INTENDED, **changes: Any) -> Attempt:
    """Attempt n at the n-th of alpha, beta, gamma, started at T, open windows of 20 s and 600 s."""
    made = Attempt(
        n=n,
        pool_id=("alpha", "beta", "gamma")[(n - 1) % 3],
        provider="fake",
        identity=f"r-{n:038d}",
        reference="base",
        epoch=EPOCH,
        round=1,
        started_at=T,
        settle_until=s(20),
        window_until=s(600),
        lag_ms=5_000,
        idempotent=False,
        lifetime_seconds=3660,
        outcome=outcome,
        asked=0 if outcome is Outcome.INTENDED else 1,
        look_at=T,
    )
    if outcome in (Outcome.CREATED, Outcome.ADOPTED):
        made = replace(made, instance_id=f"i-{n}", ready=True, ended_at=T)
    return replace(made, **changes)


def refused(n: int = 1, code: str = "provider_capacity", **changes: Any) -> Attempt:
    """An attempt that was surely refused at T."""
    return attempt(n, Outcome.REFUSED, code=code, ended_at=T, **changes)


def box(*attempts: Attempt, state: State = State.STARTING, **changes: Any) -> Sandbox:
    """A record with these attempts; the last one serves unless it is starting or never served."""
    made = Sandbox(
        id="sbx-a",
        tenant="acme",
        spec=Spec(SHAPE),
        created_at=T,
        expires_at=s(3600),
        create_until=s(600),
        route=(candidate("alpha"), candidate("beta")),
        request_id="req-1",
        state=state,
        epoch=EPOCH,
        attempts=attempts,
    )
    live = (State.RUNNING, State.PAUSING, State.PAUSED, State.RESUMING, State.LOST)
    if state in live and "serving" not in changes:
        changes["serving"] = len(attempts)
    return replace(made, **changes)


def running(**changes: Any) -> Sandbox:
    """A record that runs from attempt 1."""
    state = changes.pop("state", State.RUNNING)
    return box(attempt(1, Outcome.CREATED), state=state, started_at=T, **changes)


def wish(verb: str = "client", at: int = T, id_: str = "w-1", value: int = 0) -> Wish:
    """A wish."""
    return Wish(id_, at, verb, value=value)


def profile(kind: str = "fake", **changes: Any) -> Profile:
    """A provider that can do everything."""
    made = Profile(
        kind=kind,
        name=kind,
        naming=Naming(idempotent=True),
        lifetime=Lifetime(max_ttl=None, extends=True),
        labels=LabelLimits(21, 256),
        isolation=Isolation.MICROVM,
        abilities={"exec": {}, "env": {}, "pause": {"keeps": ["memory"]}, "gpu": None},
        hosts=(),
        timeouts=Timeouts(),
        price=UnitPrice(50_000, 10_000, "USD", "2026-01-01", "https://example.com"),
    )
    return replace(made, **changes)


def pool(id_: str = "alpha", position: int = 0, **changes: Any) -> Pool:
    """A pool with the image `default` prepared at 2x4; `profile_…` changes its profile."""
    inner = {k.removeprefix("profile_"): v for k, v in changes.items() if k.startswith("profile_")}
    outer = {k: v for k, v in changes.items() if not k.startswith("profile_")}
    kind = inner.pop("kind", "fake")
    images = {"default": (Prepared("base", SHAPE),)}
    made = Pool(id_, profile(kind, **inner), position, isolation=Isolation.MICROVM, images=images)
    return replace(made, **outer)
