"""Values of Secrets Manager, kept for a while: pool credentials, the pepper, the vault's key."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sandbox_router.model.failure import Internal
from sandbox_router.model.secret import Secret

from . import errors

MAX_AGE_SECONDS = 300.0
"""After a rotation the old value is used for at most this long."""
CURRENT, PREVIOUS = "AWSCURRENT", "AWSPREVIOUS"
"""Secrets Manager's staging labels of the two last versions."""


@dataclass(frozen=True)
class _Kept:
    at: float
    value: bytes | None = field(repr=False)


class SecretStore:
    """Secrets by ARN. When Secrets Manager does not answer, what is known is used on."""

    def __init__(self, client: Any, clock: Callable[[], float] = time.monotonic) -> None:
        self._client, self._clock = client, clock
        self._kept: dict[tuple[str, str], _Kept] = {}
        self._lock = threading.Lock()

    def text(self, arn: str) -> Secret:
        """The current value as text; raises Internal when there is none."""
        value = self.value(arn)
        try:
            text = value.decode() if value is not None else ""
        except UnicodeDecodeError:
            raise Internal from None
        if not text.strip():
            raise Internal
        return Secret(text.strip())

    def value(
        self, arn: str, stage: str = CURRENT, max_age: float = MAX_AGE_SECONDS
    ) -> bytes | None:
        """The bytes of a version, at most so many seconds old; None when there is no such version.
        Raises Internal when it cannot be read and never was.
        """
        with self._lock:  # one process asks once, and the others wait for that answer
            kept = self._kept.get((arn, stage))
            if kept is None or self._clock() - kept.at >= max_age:
                kept = self._fetched(arn, stage, kept)
                self._kept[arn, stage] = kept
            return kept.value

    def _fetched(self, arn: str, stage: str, kept: _Kept | None) -> _Kept:
        try:
            answer = self._client.get_secret_value(SecretId=arn, VersionStage=stage)
        except Exception as error:
            errors.meaning(error)  # raises what is no answer of AWS
            if stage != CURRENT and errors.code(error) == "ResourceNotFoundException":
                return _Kept(self._clock(), None)
            errors.note("secretsmanager", error)
            if kept is None:
                raise Internal from error
            return _Kept(self._clock(), kept.value)
        text = answer.get("SecretString")
        return _Kept(self._clock(), answer["SecretBinary"] if text is None else text.encode())
