"""A new API key, made with the deployment's own secret and put into its table."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence

from functions.catalog import READ, WRITE
from functions.edge import wiring
from functions.edge.principal import ADMIN
from functions.edge.settings import BadSetting, Settings
from infra.cloud.console.deployed import Deployed
from sandbox_router.model.secret import Secret

SCOPES = (READ, WRITE)
"""Of a key nobody asked more or less for: everything a client does with sandboxes."""
_TENANT = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


def make(deployed: Deployed, tenant: str, scopes: Sequence[str]) -> tuple[str, Secret]:
    """The id of a new key, and the key: it is kept as a keyed hash only. Raises BadSetting."""
    if not _TENANT.fullmatch(tenant):
        raise BadSetting(f"TENANT={tenant!r} is not lower-case letters, digits and hyphens")
    known = (*SCOPES, ADMIN)
    if unknown := sorted(set(scopes) - set(known)):
        raise BadSetting(f"SCOPES: {unknown[0]!r} is none of {', '.join(known)}")
    if not scopes:
        raise BadSetting(f"SCOPES is empty; it takes any of {', '.join(known)}")
    router = wiring.build(Settings.of(deployed.variables))
    key = Secret(f"sbr_{secrets.token_urlsafe(32)}")
    return router.add_key(tenant, key, scopes), key
