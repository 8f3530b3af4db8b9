"""`make chaos`: KILLS (200), SEED (the clock's), CLIENTS (10); 1 if anything was wrong."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from tests.local.chaos.run import Setting, run


def main() -> int:
    """Run, print, judge."""
    setting = Setting(
        kills=int(os.environ.get("KILLS") or 200),
        seed=int(os.environ.get("SEED") or time.time()),
        clients=int(os.environ.get("CLIENTS") or 10),
    )
    print(f"SEED={setting.seed} KILLS={setting.kills} CLIENTS={setting.clients}", flush=True)
    with tempfile.TemporaryDirectory(prefix="chaos-") as folder:
        outcome = run(setting, Path(folder), partial(print, flush=True))
    print(outcome)
    return 0 if outcome.good else 1


if __name__ == "__main__":
    sys.exit(main())
