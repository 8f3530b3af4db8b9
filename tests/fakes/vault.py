"""A vault whose ciphertext shows no value, and no more than that."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Mapping

from sandbox_router.model.failure import Internal
from sandbox_router.model.secret import Secret

MARKER = b"fake-sealed:"


class FakeVault:
    """`ports.Vault`: XOR behind a marker, bound to the id. For tests only."""

    def seal(self, record_id: str, secrets: Mapping[str, Secret]) -> bytes:
        names = {name: secret.reveal() for name, secret in secrets.items()}
        text = json.dumps(names, sort_keys=True).encode()
        return MARKER + _mixed(record_id, _sum(record_id, text) + text)

    def unseal(self, record_id: str, sealed: bytes) -> Mapping[str, Secret]:
        plain = _mixed(record_id, sealed[len(MARKER) :])
        if not sealed.startswith(MARKER) or plain[:32] != _sum(record_id, plain[32:]):
            raise Internal
        return {name: Secret(value) for name, value in json.loads(plain[32:]).items()}


def _sum(record_id: str, text: bytes) -> bytes:
    return hashlib.sha256(record_id.encode() + b"\0" + text).digest()


def _mixed(record_id: str, data: bytes) -> bytes:
    key = itertools.cycle(hashlib.sha512(record_id.encode()).digest())
    return bytes(a ^ b for a, b in zip(data, key, strict=False))
