"""What the operator's pools offer, as the catalog endpoints show it: facts, never credentials."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from typing import Any

from sandbox_router.model.capability import Profile, UnitPrice
from sandbox_router.model.money import amount
from sandbox_router.model.pool import Pool, Prepared
from sandbox_router.model.size import STANDARD, Shape, parse, plain
from sandbox_router.model.view import price_view


def providers(pools: Sequence[Pool], broken: Set[str]) -> list[dict[str, Any]]:
    """Kinds by name, each with its pools."""
    profiles = {pool.kind: pool.profile for pool in pools}
    return [
        {
            **_profile(profiles[kind]),
            "pools": [_pool(pool, broken) for pool in pools if pool.kind == kind],
        }
        for kind in sorted(profiles)
    ]


def _profile(profile: Profile) -> dict[str, Any]:
    life, labels = profile.lifetime, profile.labels
    return {
        "kind": profile.kind,
        "name": profile.name,
        "isolation": str(profile.isolation),
        "idempotent_create": profile.naming.idempotent,
        "lifetime": {
            "max_ttl_seconds": life.max_ttl,
            "acts_on_paused": life.acts_on_paused,
            "extends": life.extends,
        },
        "labels": {
            "count": labels.count,
            "value_length": labels.value_length,
            "value_pattern": labels.value_pattern,
        },
        "regions": None if profile.regions is None else list(profile.regions),
        "abilities": {
            name: None if detail is None else dict(detail)
            for name, detail in profile.abilities.items()
        },
        "price": None if profile.price is None else _unit_price(profile.price),
        "links": dict(profile.links),
    }


def _unit_price(price: UnitPrice) -> dict[str, Any]:
    return {
        "vcpu_hour": amount(price.vcpu_hour),
        "gib_hour": amount(price.gib_hour),
        "currency": price.currency,
        "as_of": price.as_of,
        "source": price.source,
    }


def _pool(pool: Pool, broken: Set[str]) -> dict[str, Any]:
    return {
        "id": pool.id,
        "region": pool.region,
        "geo": pool.geo,
        "isolation": str(pool.isolation),
        "max_ttl_seconds": pool.ttl_cap,
        "health": "broken" if pool.id in broken else "draining" if pool.draining else None,
    }


def sizes(pools: Sequence[Pool]) -> list[dict[str, Any]]:
    """Standard sizes and whatever else is prepared, smallest first."""
    shapes = {size: parse(size)[0] for size in STANDARD}
    for _, _, prepared in _prepared(pools):
        shapes.setdefault(prepared.shape.name, prepared.shape)
    ordered = sorted(shapes.items(), key=lambda item: (item[1].milli_vcpu, item[1].memory_mib))
    return [
        {
            "size": name,
            "vcpu": plain(shape.milli_vcpu, 1000),
            "memory_gib": plain(shape.memory_mib, 1024),
            "pools": [
                {
                    "pool_id": pool.id,
                    "provider": pool.kind,
                    "price": price_view(pool.price(shape)),
                }
                for pool in pools
                if _serves(pool, shape)
            ],
        }
        for name, shape in ordered
    ]


def _serves(pool: Pool, shape: Shape) -> bool:
    prepared = any(prepared.shape.name == shape.name for _, _, prepared in _prepared([pool]))
    rule = pool.profile.sizes
    return prepared or bool(pool.any_size and rule is not None and rule.hold(shape))


def _prepared(pools: Sequence[Pool]) -> Iterator[tuple[Pool, str, Prepared]]:
    for pool in pools:
        for name, found in pool.images.items():
            for prepared in found:
                yield pool, name, prepared


def regions(pools: Sequence[Pool]) -> list[dict[str, Any]]:
    """Regions and geos by name."""
    names = sorted({name for pool in pools for name in (pool.region, pool.geo) if name})
    return [
        {"region": name, "pools": [p.id for p in pools if name in (p.region, p.geo)]}
        for name in names
    ]


def images(pools: Sequence[Pool]) -> list[dict[str, Any]]:
    """The image table by name; size `any` is every size the pool serves."""
    found: dict[str, list[dict[str, str]]] = {}
    for pool, name, prepared in _prepared(pools):
        entry = {
            "pool_id": pool.id,
            "provider": pool.kind,
            "size": prepared.shape.name,
            "reference": prepared.reference,
        }
        found.setdefault(name, []).append(entry)
    for pool in pools:
        for name, reference in pool.any_size.items():
            entry = {"pool_id": pool.id, "provider": pool.kind, "size": "any"}
            found.setdefault(name, []).append({**entry, "reference": reference})
    return [{"name": name, "prepared": found[name]} for name in sorted(found)]
