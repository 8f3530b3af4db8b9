"""`event FILE`: hand an event of another system to the deployment in STATE, running or not.

There is no EventBridge here; the real worker takes it, in this process, and leaves the rest to the
queue.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from functions.edge import wiring
from functions.edge.settings import BadSetting, Settings
from functions.workers import accept_event
from infra.local import pools
from infra.local.options import Options
from infra.local.state import State

OK, REFUSED, UNUSABLE = 0, 1, 2


def event(options: Options, env: Mapping[str, str], file: str | None) -> int:
    """Take one event; the exit code."""
    state = State(options.state)
    resolved = state.pools_resolved
    try:
        asked = json.loads(Path(file or "").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        print(f"{file or 'FILE'}: no event ({type(error).__name__})", file=sys.stderr)
        return UNUSABLE
    if not state.pepper.exists():
        print(f"STATE={state.path} holds no deployment: start one first", file=sys.stderr)
        return UNUSABLE
    try:
        found = pools.source(state) if not resolved.exists() else resolved
        settings = replace(Settings.of(env), state=state.path, pools=found)
        wiring.use(wiring.build, settings)
        outcome = accept_event.handler(asked, None)["outcome"]
    except BadSetting as error:
        print(error, file=sys.stderr)
        return UNUSABLE
    where = f"; why is in {settings.letters_file}" if outcome == "refused" else ""
    print(f"{outcome}{where}")
    return REFUSED if outcome == "refused" else OK
