"""The vault whose key is a secret: encrypted by KMS at rest, read only by those who may."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from adapters.sealing import KEY_SIZE, BoxVault
from sandbox_router.model.failure import Internal
from sandbox_router.model.secret import Secret

from .secrets import CURRENT, MAX_AGE_SECONDS, PREVIOUS, SecretStore

FRESH_SECONDS = 10.0
"""How old a key may be when something could not be opened with it: a burst of broken values asks
Secrets Manager only so often."""
_DOMAIN = b"router vault key"


class SecretVault:
    """`ports.Vault`: boxes under a key derived from a secret of at least 32 bytes.

    Seals with the current version and opens with that and the one before. So the secret must not
    be rotated twice within the longest life of a sandbox (`MAX_TTL_SECONDS`).
    """

    def __init__(self, secrets: SecretStore, arn: str) -> None:
        self._secrets, self._arn = secrets, arn

    def seal(self, record_id: str, secrets: Mapping[str, Secret]) -> bytes:
        return self._boxes().seal(record_id, secrets)

    def unseal(self, record_id: str, sealed: bytes) -> Mapping[str, Secret]:
        try:
            return self._boxes().unseal(record_id, sealed)
        except Internal:  # perhaps sealed by a process that knows the next key already
            return self._boxes(FRESH_SECONDS).unseal(record_id, sealed)

    def _boxes(self, max_age: float = MAX_AGE_SECONDS) -> BoxVault:
        current = self._secrets.value(self._arn, CURRENT, max_age)
        previous = self._secrets.value(self._arn, PREVIOUS, max_age)
        if current is None:
            raise Internal
        return BoxVault(*(_key(value) for value in (current, previous) if value is not None))


def _key(value: bytes) -> bytes:
    """Text or bytes of any length: what generates secrets makes text."""
    if len(value) < KEY_SIZE:
        raise Internal("the vault's secret is too short")
    return hashlib.blake2b(value, digest_size=KEY_SIZE, person=_DOMAIN).digest()
