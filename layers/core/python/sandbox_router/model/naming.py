"""The names by which what a provider made is known to be ours."""

from __future__ import annotations

from base64 import b32encode
from collections.abc import Mapping
from hashlib import sha256

from .record import Attempt
from .sandbox import Sandbox

MOST_ATTEMPTS = 100
"""More than pools times passes: how far an identity is compared."""
TENANT, NAMESPACE = "constal-tenant", "constal-namespace"
ACCOUNT, SANDBOX_ID, IDENTITY = "constal-account", "constal-sandbox-id", "constal-sandbox"


def account(deployment: str) -> str:
    """The deployment's account tag: 52 lower-case base32 characters."""
    return _base32(deployment.encode())


def identity(deployment: str, record_id: str, n: int) -> str:
    """The attempt's stable name: exactly 40 of `[a-z0-9-]`."""
    return "r-" + _base32(f"{deployment}\0{record_id}\0{n}".encode())[:38]


def capture_name(deployment: str, snapshot_id: str) -> str:
    """What a snapshot's capture is called: its id, and 20 characters that prove whose it is."""
    proof = _base32(f"{deployment}\0{snapshot_id}".encode())[:20]
    return f"{snapshot_id}-{proof}"


def snapshot_of(deployment: str, name: str) -> str | None:
    """The snapshot whose capture has this name; None when it is none of ours."""
    snapshot_id = name.rpartition("-")[0]
    return snapshot_id if name and name == capture_name(deployment, snapshot_id) else None


def capture_tags(deployment: str, snapshot_id: str) -> dict[str, str]:
    """The tags a capture's name stands for: it has room for no tenant and no namespace."""
    return {
        TENANT: "",
        NAMESPACE: "",
        ACCOUNT: account(deployment),
        SANDBOX_ID: snapshot_id,
        IDENTITY: identity(deployment, snapshot_id, 1),
    }


def identity_tags(deployment: str, box: Sandbox, attempt: Attempt) -> dict[str, str]:
    """The tags that prove whose an instance is."""
    return {
        TENANT: box.tenant,
        NAMESPACE: box.namespace,
        ACCOUNT: account(deployment),
        SANDBOX_ID: box.id,
        IDENTITY: attempt.identity,
    }


def attempt_of(deployment: str, tags: Mapping[str, str]) -> int | None:
    """Which attempt of ours the tags prove an instance to be; None when they prove nothing.

    The identity is a digest over deployment, record and attempt: neither another deployment's
    instance nor one with tags half copied can carry it. Tenant and namespace must be there, but
    not in full: a provider may hold a reduced form.
    """
    if tags.get(ACCOUNT) != account(deployment) or not {TENANT, NAMESPACE} <= tags.keys():
        return None
    record_id, name = tags.get(SANDBOX_ID, ""), tags.get(IDENTITY)
    numbers = range(1, MOST_ATTEMPTS + 1)
    return next((n for n in numbers if identity(deployment, record_id, n) == name), None)


def _base32(data: bytes) -> str:
    return b32encode(sha256(data).digest()).decode().rstrip("=").lower()
