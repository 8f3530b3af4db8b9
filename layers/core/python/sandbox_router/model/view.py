"""Records as a client sees them: an allow-list of what may leave, in the contract's words."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from .money import Price, amount, estimate
from .record import Attempt, Outcome
from .sandbox import Candidate, Sandbox
from .size import Shape, plain
from .snapshot import Snapshot


def timestamp(ms: int | None) -> str | None:
    """RFC 3339 UTC with milliseconds."""
    if ms is None:
        return None
    moment = datetime.fromtimestamp(ms // 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{ms % 1000:03d}Z"


def shape_view(shape: Shape) -> dict[str, Any]:
    """vCPU and GiB."""
    return {
        "vcpu": plain(shape.milli_vcpu, 1000),
        "memory_gib": plain(shape.memory_mib, 1024),
        "disk_gib": None if shape.disk_mib is None else plain(shape.disk_mib, 1024),
        "gpu": None if shape.gpu is None else {"type": shape.gpu.type, "count": shape.gpu.count},
    }


def price_view(price: Price | None) -> dict[str, Any] | None:
    """Currency, amount per hour and where it was read."""
    if price is None:
        return None
    return {
        "currency": price.currency,
        "per_hour": amount(price.per_hour),
        "as_of": price.as_of,
        "source": price.source,
    }


def candidate_view(candidate: Candidate) -> dict[str, Any]:
    """One entry of a route."""
    return {
        "pool_id": candidate.pool_id,
        "provider": candidate.provider,
        "price_per_hour": None if candidate.price is None else amount(candidate.price.per_hour),
        "reasons": list(candidate.reasons),
    }


def attempt_view(attempt: Attempt) -> dict[str, Any]:
    """One attempt; an intended one is unknown to everybody else."""
    outcome = Outcome.UNKNOWN if attempt.outcome is Outcome.INTENDED else attempt.outcome
    return {
        "n": attempt.n,
        "pool_id": attempt.pool_id,
        "provider": attempt.provider,
        "outcome": str(outcome),
        "class": attempt.klass,
        "started_at": timestamp(attempt.started_at),
        "ended_at": timestamp(attempt.ended_at),
    }


def cost_view(box: Sandbox, now: int) -> dict[str, Any] | None:
    """The running estimate from the list price snapshot taken at create."""
    serving = box.server
    price = None if serving is None else box.candidate(serving.pool_id).price
    shown = price_view(price)
    if price is None or shown is None:
        return None
    return {"estimated": amount(estimate(price, box.running_ms(now))), **shown}


def sandbox_view(box: Sandbox, now: int) -> dict[str, Any]:
    """The whole sandbox."""
    serving = box.server
    chosen = None if serving is None else box.candidate(serving.pool_id)
    return {
        "id": box.id,
        "state": str(box.state),
        "state_reason": box.state_reason,
        "observed_at": timestamp(box.observed_at),
        "created_at": timestamp(box.created_at),
        "started_at": timestamp(box.started_at),
        "expires_at": timestamp(box.expires_at),
        "idle_timeout_seconds": box.idle_seconds,
        "idle_counts": None if box.idle_seconds is None else "router_calls",
        "labels": dict(box.labels),
        "image": None if box.spec.pinned else box.spec.image,
        "snapshot_id": box.spec.snapshot_id,
        "size": shape_view(chosen.shape if chosen else box.spec.shape),
        "region": chosen.region if chosen else box.spec.region,
        "provider": None if serving is None else serving.provider,
        "pool_id": None if serving is None else serving.pool_id,
        "instance_id": None if serving is None else serving.instance_id,
        "isolation": None if chosen is None else str(chosen.isolation),
        "env_names": list(box.spec.env_names),
        "cost": cost_view(box, now),
        "route": [candidate_view(candidate) for candidate in box.route],
        "attempts": [attempt_view(attempt) for attempt in box.attempts],
    }


def snapshot_view(snapshot: Snapshot) -> dict[str, Any]:
    """The whole snapshot. size: of the sandbox, and of what is made from it."""
    return {
        "id": snapshot.id,
        "state": str(snapshot.state),
        "state_reason": snapshot.state_reason,
        "sandbox_id": snapshot.sandbox_id,
        "created_at": timestamp(snapshot.created_at),
        "ready_at": timestamp(snapshot.started_at),
        "expires_at": timestamp(snapshot.expires_at),
        "contents": snapshot.contents,
        "interrupts": snapshot.interrupts,
        "size_bytes": snapshot.size_bytes,
        "size": shape_view(snapshot.shape),
        "provider": snapshot.provider,
        "pool_id": snapshot.pool_id,
        "attempts": [attempt_view(attempt) for attempt in snapshot.attempts],
    }
