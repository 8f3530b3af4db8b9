"""May a pool serve a request? Reasons, not booleans: nothing the caller set is ever dropped."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..model.pool import Pool, Prepared
from ..model.spec import Spec
from .health import Health

IDENTITY_TAGS = 5
"""Tags we add to an instance beside the customer's labels."""


def refusals(spec: Spec, pool: Pool, health: Health) -> tuple[str, ...]:
    """Every reason why `pool` cannot serve `spec`; empty when it can."""
    return (
        *_operator(spec, pool, health),
        *_place(spec, pool),
        *_limits(spec, pool),
        *_placement_reasons(spec, pool),
    )


def placement(spec: Spec, pool: Pool) -> Prepared | None:
    """What to boot for this image at this shape in this pool, if it is prepared there."""
    if (pinned := spec.pinned) is not None:
        prepared = Prepared(pinned.reference, pinned.shape)
        return prepared if pool.id == pinned.pool_id and _fits(spec, prepared) else None
    fitting = (p for p in pool.images.get(spec.image, ()) if _fits(spec, p))
    if (found := next(fitting, None)) is not None:
        return found
    reference, sizes = _reference(spec, pool), pool.profile.sizes
    if reference is None or (sizes is not None and not sizes.hold(spec.shape)):
        return None
    return Prepared(reference, spec.shape)


def _reference(spec: Spec, pool: Pool) -> str | None:
    """The vendor's name of this image, where it says nothing of a size."""
    kind, separator, reference = spec.image.partition(":")
    return reference if separator and kind == pool.kind else pool.any_size.get(spec.image)


def _fits(spec: Spec, prepared: Prepared) -> bool:
    want, have = spec.shape, prepared.shape
    if (want.milli_vcpu, want.memory_mib) != (have.milli_vcpu, have.memory_mib):
        return False
    if want.disk_mib is not None and (have.disk_mib is None or have.disk_mib < want.disk_mib):
        return False
    return want.gpu is None or want.gpu == have.gpu


def _operator(spec: Spec, pool: Pool, health: Health) -> Iterator[str]:
    prefer, names = spec.prefer, {pool.id, pool.kind}
    if pool.draining:
        yield "pool_draining"
    if pool.id in health.broken:
        yield "pool_broken"
    if prefer.only and not names & set(prefer.only):
        yield "not_in_provider.only"
    if names & set(prefer.ignore):
        yield "in_provider.ignore"
    if not prefer.allow_fallbacks and prefer.order and not names & set(prefer.order):
        yield "not_in_provider.order"


def _place(spec: Spec, pool: Pool) -> Iterator[str]:
    if spec.region is not None and spec.region not in (pool.region, pool.geo):
        yield "region"
    if not pool.isolation.satisfies(spec.isolation):
        yield "isolation"
    for ability in spec.prefer.require:
        if not pool.profile.can(ability):
            yield f"ability:{ability}"
    if spec.env_names and not pool.profile.can("env"):
        yield "env"


def _limits(spec: Spec, pool: Pool) -> Iterator[str]:
    if pool.ttl_cap is not None and spec.ttl_seconds > pool.ttl_cap:
        yield "ttl_seconds"
    limits = pool.profile.labels
    if len(spec.labels) + IDENTITY_TAGS > limits.count:
        yield "labels:count"
    if any(key.startswith(limits.reserved) for key in spec.labels):
        yield "labels:reserved_key"
    if any(len(value) > limits.value_length for value in spec.labels.values()):
        yield "labels:value_length"
    pattern = limits.value_pattern
    if pattern and not all(re.fullmatch(pattern, value) for value in spec.labels.values()):
        yield "labels:value_syntax"


def _placement_reasons(spec: Spec, pool: Pool) -> Iterator[str]:
    found = placement(spec, pool)
    if found is None and spec.pinned is not None:
        yield "size" if pool.id == spec.pinned.pool_id else "snapshot_elsewhere"
        return
    if found is None:
        prepared = spec.image in pool.images or _reference(spec, pool) is not None
        yield "size" if prepared else "image_not_prepared"
        return
    ceiling = spec.prefer.max_price_per_hour
    if ceiling is None:
        return
    price = pool.price(found.shape)
    if price is None:
        yield "price_unknown"
    elif price.per_hour > ceiling:
        yield "max_price_per_hour"
