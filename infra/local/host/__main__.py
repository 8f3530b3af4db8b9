"""The provider host: real sandboxes on this machine behind vendors' wire APIs.

python -m infra.local.host --port P --state DIR --config FILE --announce DIR/host.json
"""

from __future__ import annotations

import argparse
import asyncio
import fcntl
import json
import os
import resource
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.routing import BaseRoute, Mount

from infra.local.host import isolation
from infra.local.host.calls import CallLog
from infra.local.host.config import Config, ConfigError, read_config
from infra.local.host.control import HostControl
from infra.local.host.dialects import DIALECTS
from infra.local.host.engine import Engine
from infra.local.host.faults import Faults
from infra.local.host.gate import Gate
from infra.local.host.instance import now_ms
from infra.local.host.moments import rfc3339
from infra.local.host.server import Server, loopback


def main() -> int:
    """Run the host until SIGTERM or SIGINT; return the exit code."""
    options = _options()
    try:
        config = read_config(options.config, frozenset(DIALECTS))
        with _only_one(options.state):
            tier, line = isolation.detect(options.state, options.isolation)
            print(f"provider host: {line}", file=sys.stderr, flush=True)
            return asyncio.run(_serve(options, config, tier))
    except (ConfigError, RuntimeError, OSError) as error:
        print(f"provider host: {error}", file=sys.stderr)
        return 2


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m infra.local.host", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="loopback port; 0 takes a free one")
    parser.add_argument("--state", type=Path, required=True, help="directory of its own")
    parser.add_argument("--config", type=Path, required=True, help="accounts and templates, JSON")
    parser.add_argument("--announce", type=Path, help="file that tells where it listens")
    parser.add_argument("--isolation", choices=sorted(isolation.TIERS), help="default: the best")
    return parser.parse_args()


@contextmanager
def _only_one(state: Path) -> Iterator[None]:
    """Hold the state directory: two hosts in one would remove each other's sandboxes."""
    state.mkdir(parents=True, exist_ok=True, mode=0o700)
    with open(state / "lock", "w", encoding="ascii") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise RuntimeError(f"another host runs in {state}") from error
        yield


async def _serve(options: argparse.Namespace, config: Config, tier: isolation.Tier) -> int:
    _raise_file_limit()
    engine = Engine(tier, options.state.resolve(), config.templates)
    engine.prepare()
    listener = loopback(options.port)
    facts = _facts(listener.getsockname()[1], tier)
    app = _application(engine, config, facts)

    def announce() -> None:
        if options.announce is not None:
            _write(options.announce, facts)

    server = Server(app, on_started=announce, on_stopping=engine.close)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, setattr, server, "should_exit", True)
    await server.serve(sockets=[listener])
    if options.announce is not None:
        options.announce.unlink(missing_ok=True)
    return 0


def _application(engine: Engine, config: Config, facts: dict[str, Any]) -> Starlette:
    faults, log = Faults(), CallLog()
    control = HostControl(engine, config, faults, log, facts)
    routes: list[BaseRoute] = [*control.routes()]
    for name, dialect in DIALECTS.items():
        served = dialect(engine, config.of_dialect(name))
        routes.append(Mount(f"/{name}", Gate(served, served, faults, log)))
    return Starlette(routes=routes)


def _facts(port: int, tier: isolation.Tier) -> dict[str, Any]:
    return {
        "pid": os.getpid(),
        "url": f"http://127.0.0.1:{port}",
        "engine": tier.name,
        "isolation": tier.isolation,
        "started_at": rfc3339(now_ms()),
    }


def _write(path: Path, facts: dict[str, Any]) -> None:
    """Write whole or not at all, for this user only."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump(facts, file)
    draft.replace(path)


def _raise_file_limit() -> None:
    """An instance takes a handful of descriptors here; its own limit is set separately."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


if __name__ == "__main__":
    sys.exit(main())
