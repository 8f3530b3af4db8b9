"""Who is calling: a tenant's key with its scopes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Principal:
    """One API key's identity. Scopes: `sandboxes:read`, `sandboxes:write`, `admin`."""

    tenant: str
    key_id: str
    scopes: frozenset[str]
