"""The queues of one machine: durable, delayed, at least once."""

from __future__ import annotations

import math

MAX_DELAY_SECONDS = 900
GRAIN_MS = 100


def delayed(now: int, seconds: float) -> int:
    """When a message sent with this delay is due: rounded up, so that equal looks merge and none
    comes early.
    """
    if not seconds <= MAX_DELAY_SECONDS:
        raise ValueError(f"a delay is at most {MAX_DELAY_SECONDS} seconds")
    if seconds <= 0:
        return now
    return math.ceil((now + seconds * 1000) / GRAIN_MS) * GRAIN_MS
