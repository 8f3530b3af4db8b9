"""`status`: what runs in this folder; 0 when the router does, 3 when it does not."""

from __future__ import annotations

from collections.abc import Mapping

from infra.local import hosting
from infra.local.options import Options
from infra.local.report import counted
from infra.local.state import State

RUNNING, NOT_RUNNING = 0, 3


def status(options: Options, env: Mapping[str, str]) -> int:
    """Print it; the exit code."""
    state = State(options.state)
    router = state.router()
    host = hosting.find(state)
    if router:
        print(f"Router: pid {router.process.pid} at {router.url}")
    else:
        print(f"Router: not running with STATE={state.path}")
    if host:
        lives = counted(host.alive(), "instance")
        print(f"Provider host: pid {host.process.pid} at {host.url}, {lives}")
    else:
        print("Provider host: not running")
    return RUNNING if router else NOT_RUNNING
