"""The machine's own clock and chance."""

from __future__ import annotations

import base64
import os
import random
import time


class SystemClock:
    """`ports.Clock` on the machine's time."""

    def now(self) -> int:
        return time.time_ns() // 1_000_000

    def sleep(self, seconds: float) -> None:
        time.sleep(max(0.0, seconds))


class SystemIds:
    """`ports.Ids` from the kernel's random source."""

    def sandbox(self) -> str:
        return "sbx-" + self._letters()

    def snapshot(self) -> str:
        return "snap-" + self._letters()

    @staticmethod
    def _letters() -> str:
        return base64.b32encode(os.urandom(17)).decode().lower()[:26]

    def nonce(self) -> str:
        return os.urandom(16).hex()

    def jitter(self) -> float:
        return random.random()
