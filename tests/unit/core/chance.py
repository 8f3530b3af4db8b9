"""Random records, as hypothesis strategies: whole, consistent, and in every state."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

from sandbox_router.model.failure import ProviderFailure, tree
from sandbox_router.model.money import Price
from sandbox_router.model.record import Attempt, Outcome, Wish
from sandbox_router.model.sandbox import Candidate, Sandbox, State
from sandbox_router.model.size import Gpu, Shape
from sandbox_router.model.spec import Isolation, Preferences, Spec
from tests.unit.core.build import EPOCH, SHAPE, T, candidate

CODES = sorted(cls.code for cls in tree(ProviderFailure))
quick = settings(derandomize=True, deadline=None, database=None, max_examples=100)
"""The same examples at every run, however busy the machine."""
ROUTE = (candidate("alpha"), candidate("beta"))
VERBS = ["pause", "resume", "client"]
LIVE = (State.RUNNING, State.PAUSING, State.PAUSED, State.RESUMING)
TEXTS = st.sampled_from(["", "a", "\0", "é", "😀 b", "\u202e"])
NAMES = st.sampled_from(["a", "b-c", "north-1", "z" * 20])
NUMBERS = st.integers(0, 2**48)
TIMES = st.integers(T - 30_000, T + 900_000)
LABELS = st.dictionaries(NAMES, TEXTS, max_size=3)


def some(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Or None."""
    return st.none() | strategy


GPUS = st.builds(Gpu, NAMES, st.integers(1, 8))
SHAPES = st.builds(Shape, st.integers(1, 64_000), st.integers(1, 2**20), some(NUMBERS), some(GPUS))
PRICES = st.builds(Price, st.integers(0, 10**9), NAMES, NAMES, TEXTS)
NAME_LISTS = st.lists(NAMES, max_size=3).map(tuple)
PREFERENCES = st.builds(
    Preferences,
    NAME_LISTS,
    NAME_LISTS,
    NAME_LISTS,
    st.booleans(),
    some(st.sampled_from(["price", "latency", "success"])),
    some(NUMBERS),
    NAME_LISTS,
)
SPECS = st.builds(
    Spec,
    shape=SHAPES,
    image=NAMES,
    ttl_seconds=st.integers(30, 86_400),
    region=some(NAMES),
    isolation=some(st.sampled_from(Isolation)),
    labels=LABELS,
    env_names=NAME_LISTS,
    ports=st.lists(st.integers(1, 65_535), max_size=3).map(tuple),
    prefer=PREFERENCES,
)
ROUTES = st.lists(NAMES, min_size=1, max_size=3, unique=True).flatmap(
    lambda names: st.tuples(*(_candidates(name) for name in names))
)


def _candidates(pool_id: str) -> st.SearchStrategy[Candidate]:
    return st.builds(
        Candidate,
        st.just(pool_id),
        NAMES,
        TEXTS,
        SHAPES,
        some(PRICES),
        NAME_LISTS,
        some(NAMES),
        st.sampled_from(Isolation),
    )


MOMENTS = st.sampled_from([T - 1, T, T + 5_000, T + 20_000, T + 600_000])
ATTEMPTS = st.builds(
    Attempt,
    n=st.just(1),
    pool_id=st.just(""),
    provider=st.just("fake"),
    identity=NAMES,
    reference=st.just("base"),
    epoch=st.integers(EPOCH - 1, EPOCH),
    round=st.just(1),
    started_at=st.just(T),
    settle_until=MOMENTS,
    window_until=MOMENTS,
    lag_ms=st.sampled_from([0, 5_000]),
    idempotent=st.booleans(),
    lifetime_seconds=st.just(3660),
    outcome=st.sampled_from(Outcome),
    ended_at=some(MOMENTS),
    code=st.sampled_from(CODES),
    retry_after=some(st.sampled_from([0, 3, 600])),
    access=some(st.binary(max_size=4)),
    ready=st.booleans(),
    asked=st.integers(0, 2),
    look_at=MOMENTS,
)
WISHES = st.builds(Wish, st.sampled_from(["w-1", "w-2"]), MOMENTS, st.sampled_from(VERBS))
ANSWERED = some(st.just("w-1"))
BARE = st.builds(
    Sandbox,
    **{name: some(WISHES) for name in ("wish_destroy", "wish_power", "wish_expiry", "wish_look")},
    **{name: ANSWERED for name in ("answered_power", "answered_expiry", "answered_look")},
    **{name: MOMENTS for name in ("expires_at", "create_until", "step_at")},
    id=st.just("sbx-a"),
    tenant=st.just("acme"),
    request_id=st.just("req-1"),
    created_at=st.just(T),
    spec=st.just(Spec(SHAPE)),
    route=st.sampled_from([ROUTE[:1], ROUTE]),
    state=st.sampled_from(State),
    missing_since=some(MOMENTS),
    epoch=st.just(EPOCH),
)


@st.composite
def lives(draw: st.DrawFn) -> Sandbox:
    """A record whose attempts walk the route pass by pass; a live one has an instance."""
    record = draw(BARE)
    live, width = record.state in LIVE, len(record.route)
    tried = draw(st.lists(ATTEMPTS, min_size=1 if live else 0, max_size=3 * width))
    if live:
        outcome = draw(st.sampled_from([Outcome.CREATED, Outcome.ADOPTED, Outcome.GONE]))
        tried[-1] = replace(tried[-1], outcome=outcome, ready=True)
    walked = tuple(_placed(a, i, record.route) for i, a in enumerate(tried))
    served = live or (record.state is not State.STARTING and draw(st.booleans()))
    return replace(record, attempts=walked, serving=len(walked) if served else 0)


def _placed(attempt: Attempt, index: int, route: tuple[Candidate, ...]) -> Attempt:
    known = attempt.outcome in (Outcome.CREATED, Outcome.ADOPTED)
    coded = attempt.outcome in (Outcome.REFUSED, Outcome.UNKNOWN)
    return replace(
        attempt,
        n=index + 1,
        pool_id=route[index % len(route)].pool_id,
        round=index // len(route) + 1,
        instance_id=f"i-{index + 1}" if known else None,
        code=attempt.code if coded else None,
    )


@st.composite
def records(draw: st.DrawFn) -> Sandbox:
    """A life with everything else a record may hold."""
    return replace(
        draw(lives()),
        spec=draw(SPECS),
        route=draw(ROUTES),
        labels=draw(LABELS),
        sealed=draw(some(st.binary(max_size=4))),
        key_hash=draw(some(NAMES)),
        state_reason=draw(some(TEXTS)),
        nonce=draw(some(NAMES)),
        due_at=draw(some(TIMES)),
        running_since=draw(some(TIMES)),
        billed_ms=draw(NUMBERS),
        news=draw(NUMBERS),
    )
