"""The router on this machine: python -m infra.local [run|stop|status|event FILE]

The environment says where and how: PORT (8080; 0 takes a free one), STATE (.state), and for tests
NETS (which nets to keep: queue, sweep, reconcile) and CRASH_AT (die before this port call).
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial

from infra.local.event import event
from infra.local.options import BadOption, Options
from infra.local.run import FAILED, UNUSABLE, run
from infra.local.status import status
from infra.local.stop import stop
from sandbox_router.model.failure import StoreBusy
from sandbox_router.table import TableError

Command = Callable[[Options, Mapping[str, str]], int]
COMMANDS: Mapping[str, Command] = {"run": run, "stop": stop, "status": status}


def main() -> int:
    """Do what the command says; the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m infra.local",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", nargs="?", choices=sorted([*COMMANDS, "event"]), default="run")
    parser.add_argument("file", nargs="?", help="with `event`: one event, as EventBridge has it")
    asked = parser.parse_args()
    if asked.file is not None and asked.command != "event":
        parser.error(f"{asked.command} takes no file")
    command = COMMANDS.get(asked.command, partial(event, file=asked.file))
    env = dict(os.environ)
    os.umask(0o077)
    try:
        return _done(command, Options.of(env), env)
    except BadOption as error:
        print(error, file=sys.stderr)
        return UNUSABLE
    except KeyboardInterrupt:
        return 130


def _done(command: Command, options: Options, env: Mapping[str, str]) -> int:
    try:
        return command(options, env)
    except BrokenPipeError:  # nobody reads what `status` or `stop` says
        return FAILED
    except (OSError, TableError, StoreBusy) as error:  # a full disk, most of the time
        why = error if isinstance(error, OSError) else "the records take no write now"
        print(f"STATE={options.state}: {why}", file=sys.stderr)
        return FAILED


if __name__ == "__main__":
    code = main()
    for stream in (sys.stdout, sys.stderr):
        with suppress(BrokenPipeError):
            stream.flush()
    # Not sys.exit: it would wait for calls whose threads nobody needs any more.
    os._exit(code)
