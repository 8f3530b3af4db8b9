"""The names by which an instance is known to be ours."""

from __future__ import annotations

from base64 import b32encode
from hashlib import sha256

from ..model.sandbox import Attempt, Sandbox

TENANT, NAMESPACE = "constal-tenant", "constal-namespace"
ACCOUNT, SANDBOX_ID, IDENTITY = "constal-account", "constal-sandbox-id", "constal-sandbox"


def account(deployment: str) -> str:
    """The deployment's account tag: 52 lower-case base32 characters."""
    return _base32(deployment.encode())


def identity(deployment: str, sandbox_id: str, n: int) -> str:
    """The attempt's stable name: exactly 40 of `[a-z0-9-]`."""
    return "r-" + _base32(f"{deployment}\0{sandbox_id}\0{n}".encode())[:38]


def identity_tags(deployment: str, box: Sandbox, attempt: Attempt) -> dict[str, str]:
    """The tags that prove whose an instance is."""
    return {
        TENANT: box.tenant,
        NAMESPACE: box.namespace,
        ACCOUNT: account(deployment),
        SANDBOX_ID: box.id,
        IDENTITY: attempt.identity,
    }


def _base32(data: bytes) -> str:
    return b32encode(sha256(data).digest()).decode().rstrip("=").lower()
