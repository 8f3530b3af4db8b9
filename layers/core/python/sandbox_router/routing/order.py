"""In which order the eligible pools are asked: a pure function of request, pools and health."""

from __future__ import annotations

from collections.abc import Iterable

from ..model.pool import Pool
from ..model.sandbox import Candidate
from ..model.spec import Preferences, Spec
from .eligible import placement, refusals
from .health import Health
from .route import Ineligible, Route


def route(spec: Spec, pools: Iterable[Pool], health: Health) -> Route:
    """The caller's order first, then the chosen sort, then the operator's order and price.

    A cooling pool comes after all that are not, whatever the caller's order says: an order says who
    is preferred among those that can serve, and this one just said that it cannot. Among the
    cooling the same order holds, so that none of them is lost when all are.
    """
    candidates, refused = [], []
    for pool in pools:
        reasons = refusals(spec, pool, health)
        if reasons:
            refused.append(Ineligible(pool.id, pool.kind, reasons))
        else:
            cooling = pool.id in health.cooling_until
            rank = (cooling, *_rank(spec.prefer, pool, spec))
            candidates.append((rank, _candidate(spec, pool, cooling)))
    candidates.sort(key=lambda pair: pair[0])
    ordered = [candidate for _, candidate in candidates]
    if not spec.prefer.allow_fallbacks:
        ordered = ordered[:1]
    return Route(tuple(ordered), tuple(refused))


def _candidate(spec: Spec, pool: Pool, cooling: bool) -> Candidate:
    prepared = placement(spec, pool)
    assert prepared is not None
    return Candidate(
        pool_id=pool.id,
        provider=pool.kind,
        reference=prepared.reference,
        shape=prepared.shape,
        price=pool.price(prepared.shape),
        reasons=(*(("cooling",) if cooling else ()), *_why(spec.prefer, pool)),
        region=pool.region,
        isolation=pool.isolation,
    )


def _preferred(prefer: Preferences, pool: Pool) -> int:
    places = [i for i, name in enumerate(prefer.order) if name in (pool.id, pool.kind)]
    return min(places, default=len(prefer.order))


def _rank(prefer: Preferences, pool: Pool, spec: Spec) -> tuple[int, int, int, int, str]:
    price = pool.price(spec.shape)
    cost = price.per_hour if price is not None else 2**62
    sort = cost if prefer.sort == "price" else 0
    return (_preferred(prefer, pool), sort, pool.position, cost, pool.id)


def _why(prefer: Preferences, pool: Pool) -> tuple[str, ...]:
    reasons = []
    if _preferred(prefer, pool) < len(prefer.order):
        reasons.append("provider.order")
    if prefer.sort == "price":
        reasons.append("sort:price")
    elif prefer.sort is not None:
        reasons.append(f"sort:{prefer.sort}:no_measurements_yet")
    reasons.append(f"position:{pool.position}")
    return tuple(reasons)
