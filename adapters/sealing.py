"""Secret boxes bound to a sandbox id, for whoever has a key: a file here, a key service there."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from nacl.exceptions import CryptoError
from nacl.secret import SecretBox

from sandbox_router.model.failure import Internal
from sandbox_router.model.secret import Secret

KEY_SIZE = SecretBox.KEY_SIZE
_FORMAT = b"\x01"


class BoxVault:
    """`ports.Vault`: each sandbox id has its own key, derived from the one given."""

    def __init__(self, key: bytes) -> None:
        if len(key) != KEY_SIZE:
            raise Internal("the vault's key has the wrong size")
        self._key = key

    def seal(self, sandbox_id: str, secrets: Mapping[str, Secret]) -> bytes:
        values = {name: secret.reveal() for name, secret in secrets.items()}
        text = json.dumps(values, sort_keys=True, separators=(",", ":"))
        return _FORMAT + bytes(self._box(sandbox_id).encrypt(text.encode()))

    def unseal(self, sandbox_id: str, sealed: bytes) -> Mapping[str, Secret]:
        try:
            text = self._box(sandbox_id).decrypt(sealed[1:])
        except (CryptoError, ValueError):
            text = b""
        if not text or sealed[:1] != _FORMAT:
            raise Internal
        return {name: Secret(value) for name, value in json.loads(text).items()}

    def _box(self, sandbox_id: str) -> SecretBox:
        derived = hashlib.blake2b(sandbox_id.encode(), key=self._key, digest_size=KEY_SIZE)
        return SecretBox(derived.digest())
