"""`run`: take the folder, find or start the provider host, serve until a signal."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Mapping
from types import FrameType

from functions.edge.settings import BadSetting
from infra.local import hosting, pools
from infra.local.assembly import Assembly, log_to
from infra.local.options import Options
from infra.local.process import Process
from infra.local.report import banner, farewell, say
from infra.local.server import DRAIN_SECONDS, LOOPBACK, Server, bind, server
from infra.local.state import AlreadyRunning, Card, Lock, State

OK, FAILED, UNUSABLE = 0, 1, 2


def run(options: Options, env: Mapping[str, str]) -> int:
    """Serve; the exit code."""
    state = State(options.state)
    state.prepare()
    try:
        lock = Lock(state)
    except AlreadyRunning:
        return _refused(state)
    try:
        bound = bind(options.port)
    except OSError as error:
        lock.release()
        print(f"PORT={options.port} cannot be used: {error.strerror}", file=sys.stderr)
        return UNUSABLE
    try:
        return _serve(options, state, bound, env)
    except (BadSetting, hosting.HostFailed) as error:
        print(error, file=sys.stderr)
        return UNUSABLE if isinstance(error, BadSetting) else FAILED
    finally:
        bound.close()
        lock.release()


def _refused(state: State) -> int:
    router = state.router()
    who = f"pid {router.process.pid} at {router.url}" if router else "another process"
    print(
        f"A router runs here already: {who}, with STATE={state.path}.\n"
        "Stop it with `make stop`, or give this one another STATE.",
        file=sys.stderr,
    )
    return FAILED


def _serve(options: Options, state: State, bound: socket.socket, env: Mapping[str, str]) -> int:
    pools.prepare(state)
    pools.check(state, env)
    host = hosting.find(state) or hosting.start(state)
    log_to(state)
    url = f"http://{LOOPBACK}:{bound.getsockname()[1]}"
    assembly = Assembly.of(options, state, host, env, url)
    key = assembly.api_key(state)
    worker = assembly.worker(options.nets)
    serving = server(assembly.gateway())
    _until_signalled(serving)
    worker.start()
    me = Process.of(os.getpid())
    assert me is not None
    bound.listen()
    Card(me, url).write(state.card)
    say(banner(url, key, state, host, assembly))
    serving.run(sockets=[bound])
    say("\nStopping ...")
    worker.stop()
    say(farewell(assembly, state.stopping()))
    return OK


def _until_signalled(serving: Server) -> None:
    """The first signal drains; the second, or an endless drain, ends at once: nothing is lost by
    it, since everything that matters is stored before it happens.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        if serving.should_exit:
            os._exit(FAILED)
        serving.should_exit = True
        limit = threading.Timer(DRAIN_SECONDS + 2, os._exit, (OK,))
        limit.daemon = True
        limit.start()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
