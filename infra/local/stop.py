"""`stop`: end the router, destroy every sandbox, end the provider host. Safe to repeat."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

from functions.edge import wiring
from functions.edge.settings import BadSetting, Settings
from infra.local import hosting, pools
from infra.local.assembly import Assembly, living, log_to
from infra.local.hosting import HostFailed
from infra.local.options import Options
from infra.local.process import Process
from infra.local.report import snapshots_kept
from infra.local.run import FAILED, OK
from infra.local.server import DRAIN_SECONDS
from infra.local.state import AlreadyRunning, Card, Lock, State
from sandbox_router.model.record import Record
from sandbox_router.model.sandbox import Sandbox
from sandbox_router.model.snapshot import Snapshot

R = TypeVar("R", bound=Record)
ROUTER_SECONDS = DRAIN_SECONDS + 5
DESTROY_SECONDS = 30.0


def stop(options: Options, env: Mapping[str, str]) -> int:
    """Leave nothing running; the exit code."""
    state = State(options.state)
    if not state.exists:
        print(f"Nothing to stop: {state.path} holds no records of a router.")
        return OK
    me = Process.of(os.getpid())
    assert me is not None
    with suppress(OSError):  # a full disk: the router's last words are the less true
        Card(me, "").write(state.stopper)
    try:
        lock = _taken_over(state)
    except AlreadyRunning:
        print("The router does not stop; nothing was destroyed.", file=sys.stderr)
        return FAILED
    finally:
        state.stopper.unlink(missing_ok=True)
    try:
        return _end_all(options, state, env)
    finally:
        lock.release()


def _taken_over(state: State) -> Lock:
    """The folder's lock, after the router that held it is gone: no create comes in any more."""
    deadline = time.monotonic() + ROUTER_SECONDS
    while (router := state.router()) and time.monotonic() < deadline:
        router.process.signal(signal.SIGTERM)
        if router.process.ended_within(ROUTER_SECONDS):
            print(f"Router (pid {router.process.pid}) stopped.")
        else:
            router.process.signal(signal.SIGKILL)
            print(f"Router (pid {router.process.pid}) did not stop in time and was ended.")
            router.process.ended_within(2)
    return Lock(state)


def _end_all(options: Options, state: State, env: Mapping[str, str]) -> int:
    host = hosting.find(state)
    code = OK
    try:
        if boxes := _living(state, env, Sandbox):
            pools.check(state, env)
            host = host or hosting.start(state)
            code = _destroy(boxes, Assembly.of(options, state, host, env), state)
    except (BadSetting, HostFailed) as error:
        print(f"Records could not be worked off: {error}", file=sys.stderr)
        code = FAILED
    if host is not None and not hosting.stop(host):
        print(f"The provider host (pid {host.process.pid}) does not stop.", file=sys.stderr)
        return FAILED
    if host is None and hosting.held(state):
        print(f"Sandboxes may still run: {hosting.unanswered(state)}.", file=sys.stderr)
        return FAILED
    state.host_json.unlink(missing_ok=True)
    kept = snapshots_kept(len(_living(state, env, Snapshot)))
    print(f"Nothing runs any more.{kept}" if code == OK else "What may still run is said above.")
    return code


def _living(state: State, env: Mapping[str, str], kind: type[R]) -> list[R]:
    if not state.database.exists():
        return []
    settings = replace(Settings.of(env), state=state.path)
    return list(living(wiring.BACKENDS[settings.backend](settings), kind))


def _destroy(boxes: list[Sandbox], assembly: Assembly, state: State) -> int:
    """Wish every sandbox gone and work until it is; the exit code."""
    log_to(state)
    local = pools.local_ids(state)
    worker = assembly.worker(nets=frozenset())
    worker.start()
    for box in boxes:
        if not box.state.terminal:
            assembly.router.destroy(box.tenant, box.id)
    deadline = time.monotonic() + DESTROY_SECONDS
    while (left := _left(assembly, local)) and time.monotonic() < deadline:
        time.sleep(0.1)
    worker.stop()
    print(f"{len(boxes) - len(left)} of {len(boxes)} sandboxes destroyed.")
    abroad = [box for box in left if _abroad(box, local)]
    for box in abroad:
        print(f"  {box.id} may still run at {', '.join(_abroad(box, local))}.", file=sys.stderr)
    return FAILED if abroad else OK


def _left(assembly: Assembly, local: frozenset[str]) -> list[Sandbox]:
    """Not confirmed gone. A finished one's open attempt at the host ends with the host."""
    return [
        b for b in living(assembly.backend, Sandbox) if not b.state.terminal or _abroad(b, local)
    ]


def _abroad(box: Sandbox, local: frozenset[str]) -> list[str]:
    """Pools of open attempts that do not end with the provider host."""
    return sorted({a.pool_id for a in box.attempts if a.open} - local)
