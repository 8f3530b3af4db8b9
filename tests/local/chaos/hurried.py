"""`python -m infra.local` whose reconcile does not take a quarter of an hour. For tests only.

Its period and its grace are constants, in simulated time held to their real bounds (tests/sim).
"""

from __future__ import annotations

import os
import sys

from infra.local import __main__, assembly
from sandbox_router.reconcile import compare

PERIOD_SECONDS, GRACE_SECONDS = 3.0, 6.0


def hurry() -> None:
    """Make this process impatient."""
    assembly.RECONCILE_SECONDS = PERIOD_SECONDS
    compare.GRACE_MS = round(GRACE_SECONDS * 1000)


if __name__ == "__main__":
    hurry()
    code = __main__.main()
    sys.stdout.flush()
    os._exit(code)
