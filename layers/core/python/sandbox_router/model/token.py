"""Texts that we hand out and take back: their holder can neither change nor lend them."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from dataclasses import dataclass
from typing import Any

from .secret import Secret

MAC_BYTES = 16


class Foreign(Exception):
    """This text is none of ours, or another owner's, or for another purpose."""


@dataclass(frozen=True)
class Tokens:
    """Tokens for one purpose: `[A-Za-z0-9_-]`, readable, and only their owner's call opens them."""

    purpose: str
    pepper: Secret

    def made(self, owner: str, said: Any) -> str:
        """A token that says this, as JSON has it."""
        payload = json.dumps(said, separators=(",", ":"), ensure_ascii=False).encode()
        return _text(self._mac(owner, payload) + payload)

    def opened(self, owner: str, token: str) -> Any:
        """What it says; raises Foreign."""
        try:
            data = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        except ValueError:
            raise Foreign from None
        mac, payload = data[:MAC_BYTES], data[MAC_BYTES:]
        known = hmac.compare_digest(mac, self._mac(owner, payload))
        if not known or _text(data) != token:
            raise Foreign
        return json.loads(payload)

    def _mac(self, owner: str, payload: bytes) -> bytes:
        head = json.dumps([self.purpose, owner]).encode()  # ends where it ends, whatever they hold
        key = self.pepper.reveal().encode()
        return hmac.new(key, head + payload, hashlib.sha256).digest()[:MAC_BYTES]


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
