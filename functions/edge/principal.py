"""Who is calling, out of what the authorizer told the gateway."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sandbox_router.model.failure import Forbidden, Unauthenticated
from sandbox_router.model.principal import Principal
from sandbox_router.model.secret import Secret

ADMIN = "admin"
_BEARER = re.compile(r"bearer +([A-Za-z0-9._~+/-]{1,512}=*)", re.IGNORECASE | re.ASCII)


def principal_of(event: Mapping[str, Any]) -> Principal:
    """The caller; raises Unauthenticated when no authorizer admitted one."""
    context = (event.get("requestContext") or {}).get("authorizer") or {}
    tenant, key_id, scopes = (context.get(name) for name in ("tenant", "key_id", "scopes"))
    if not (tenant and isinstance(tenant, str) and isinstance(key_id, str)):
        raise Unauthenticated
    return Principal(tenant, key_id, frozenset(str(scopes or "").split()))


def context_of(principal: Principal) -> dict[str, str]:
    """The authorizer's context; API Gateway carries strings only."""
    return {
        "tenant": principal.tenant,
        "key_id": principal.key_id,
        "scopes": " ".join(sorted(principal.scopes)),
    }


def require(principal: Principal, scope: str) -> None:
    """Let it pass with the scope or `admin`; raises Forbidden."""
    if not {scope, ADMIN} & principal.scopes:
        raise Forbidden(f"This API key lacks the scope {scope}")


def bearer(values: list[str]) -> Secret | None:
    """The key of the only Authorization header, or None for anything else."""
    match = _BEARER.fullmatch(values[0].strip(" \t")) if len(values) == 1 else None
    return None if match is None else Secret(match[1])
