"""Names and chance, the same at every run."""

from __future__ import annotations

import base64
import hashlib
import itertools
import random


class FakeIds:
    """`ports.Ids`: everything follows from the seed."""

    def __init__(self, seed: int | str = 0) -> None:
        self._seed = seed
        self._numbers = itertools.count(1)
        self._random = random.Random(f"jitter {seed}")

    def sandbox(self) -> str:
        return "sbx-" + self._letters()

    def snapshot(self) -> str:
        return "snap-" + self._letters()

    def _letters(self) -> str:
        digest = hashlib.sha256(f"{self._seed} {next(self._numbers)}".encode()).digest()
        return base64.b32encode(digest).decode().lower()[:26]

    def nonce(self) -> str:
        return f"nonce-{self._seed}-{next(self._numbers)}"

    def jitter(self) -> float:
        return self._random.random()
