"""Secret boxes bound to a record id, for whoever has a key: a file here, a key service there."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress

from nacl.exceptions import CryptoError
from nacl.secret import SecretBox

from sandbox_router.model.failure import Internal
from sandbox_router.model.secret import Secret

KEY_SIZE = SecretBox.KEY_SIZE
_FORMAT = b"\x01"


class BoxVault:
    """`ports.Vault`: each record id has its own key, derived from the one given.

    older: keys that sealed before it; they only open.
    """

    def __init__(self, key: bytes, *older: bytes) -> None:
        self._keys = (key, *older)
        if any(len(each) != KEY_SIZE for each in self._keys):
            raise Internal("the vault's key has the wrong size")

    def seal(self, record_id: str, secrets: Mapping[str, Secret]) -> bytes:
        values = {name: secret.reveal() for name, secret in secrets.items()}
        text = json.dumps(values, sort_keys=True, separators=(",", ":"))
        return _FORMAT + bytes(_box(self._keys[0], record_id).encrypt(text.encode()))

    def unseal(self, record_id: str, sealed: bytes) -> Mapping[str, Secret]:
        if sealed[:1] != _FORMAT:
            raise Internal
        for key in self._keys:
            with suppress(CryptoError, ValueError):
                text = _box(key, record_id).decrypt(sealed[1:])
                return {name: Secret(value) for name, value in json.loads(text).items()}
        raise Internal


def _box(key: bytes, record_id: str) -> SecretBox:
    derived = hashlib.blake2b(record_id.encode(), key=key, digest_size=KEY_SIZE)
    return SecretBox(derived.digest())
