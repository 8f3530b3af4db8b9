"""What the terminal shows: how to use it, what it runs on, and what is left when it ends."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime

from infra.local.assembly import Assembly, living
from infra.local.hosting import Host
from infra.local.pools import source
from infra.local.state import State
from sandbox_router.model.sandbox import Sandbox
from sandbox_router.model.snapshot import Snapshot

STRONGER = {
    "bubblewrap": "",
    "unshare": " Install bubblewrap for a stronger one.",
    "process": " Install bubblewrap for a real one: these are plain processes of yours.",
}


def banner(url: str, key: str, state: State, host: Host, assembly: Assembly) -> str:
    """The first words."""
    pools = ", ".join(f"{pool.id} ({pool.kind})" for pool in assembly.router.pools())
    auth = '-H "Authorization: Bearer $KEY"'
    return f"""\
Sandbox Router at {url}, records in {state.path}
Sandboxes run here by {host.engine} (isolation: {host.isolation}).{STRONGER.get(host.engine, "")}
Pools: {pools}; edit {source(state)} to add a real one.

  KEY={key}     # also in {state.key}
  curl -s {url}/v1/sandboxes {auth} \\
       -H "Content-Type: application/json" -d '{{"size": "2x4", "ttl_seconds": 600}}'
  curl -s {url}/v1/sandboxes {auth}
  curl -s {url}/v1/openapi.json     # everything else

Ctrl-C stops the router and leaves sandboxes running; `make stop` destroys them all."""


def say(text: str) -> None:
    """Print it; nobody has to read it (`make run | head`)."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def counted(number: int, noun: str) -> str:
    """`1 sandbox`, `2 sandboxes`."""
    plural = f"{noun}es" if noun.endswith("x") else f"{noun}s"
    return f"{number} {noun if number == 1 else plural}"


def farewell(assembly: Assembly, stopping: bool) -> str:
    """The last words of a router that leaves its sandboxes to the next one, or to a `stop`."""
    if stopping:
        return "Stopped. `make stop` destroys what runs."
    boxes = sorted(living(assembly.backend, Sandbox), key=lambda box: box.expires_at)
    kept = snapshots_kept(len(list(living(assembly.backend, Snapshot))))
    if not boxes:
        return f"Stopped. No sandbox runs. The provider host waits; `make stop` ends it too.{kept}"
    shown = "\n".join(
        f"  {box.id}  {box.state}  until {_time(box.expires_at)}" for box in boxes[:20]
    )
    more = f"\n  ... and {len(boxes) - 20} more" if len(boxes) > 20 else ""
    return f"""\
Stopped. {counted(len(boxes), "sandbox")} still {"runs" if len(boxes) == 1 else "run"}:
{shown}{more}
Lifetimes are enforced without the router, the last one until {_time(boxes[-1].expires_at)} and a
minute. `make run` takes up what runs; `make stop` destroys it.{kept}"""


def snapshots_kept(count: int) -> str:
    """What becomes of snapshots without a router; nothing to say where there are none."""
    if not count:
        return ""
    return f"\n{counted(count, 'snapshot')} kept: no provider ends them, only a router that runs."


def _time(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%H:%M:%S UTC")
