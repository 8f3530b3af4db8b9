"""The keeper of one sandbox of the `process` tier: parent of all it runs, and their end.

Runs as a program of its own. As a child subreaper it stays the ancestor of every process of its
sandbox, however they daemonize. When its socket closes, because the host destroyed the sandbox or
died, it kills them all and goes. It speaks JSON lines; a start carries three descriptors.
"""

from __future__ import annotations

import array
import ctypes
import json
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from typing import Any

_PR_SET_CHILD_SUBREAPER = 36
_MAX_MESSAGE = 1024 * 1024


def main() -> None:
    """Serve the socket given as a descriptor number until it closes, then kill everything."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wake_write)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    _send(channel, {"ready": os.getpid()})
    numbers: dict[int, int] = {}
    while True:
        ready, _, _ = select.select([channel.fileno(), wake_read], [], [])
        if wake_read in ready:
            with suppress(BlockingIOError):
                os.read(wake_read, 4096)
            _reap(channel, numbers)
        if channel.fileno() in ready and not _serve(channel, numbers):
            break
    kill_descendants()


def _serve(channel: socket.socket, numbers: dict[int, int]) -> bool:
    """Start what one message asks for; false at the end of the socket."""
    data, fds = _receive(channel)
    if not data:
        return False
    request = json.loads(data)
    try:
        pid = _start(request, fds)
    except OSError as error:
        _send(channel, {"number": request["number"], "error": str(error)})
    else:
        numbers[pid] = request["number"]
        _reap(channel, numbers)  # it may have ended before it was known here
    finally:
        for fd in fds:
            os.close(fd)
    return True


def _start(request: dict[str, Any], fds: list[int]) -> int:
    limits: list[list[int]] = request["limits"]

    def limit() -> None:
        for kind, wanted in limits:
            _, hard = resource.getrlimit(kind)
            ceiling = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
            resource.setrlimit(kind, (ceiling, ceiling))

    popen = subprocess.Popen(
        request["argv"],
        stdin=fds[0],
        stdout=fds[1],
        stderr=fds[2],
        env=request["env"],
        cwd="/",
        start_new_session=True,
        preexec_fn=limit,
    )
    popen.returncode = 0  # reaped below with every other child, not by subprocess
    return popen.pid


def _receive(channel: socket.socket) -> tuple[bytes, list[int]]:
    data, ancillary, _, _ = channel.recvmsg(_MAX_MESSAGE, socket.CMSG_SPACE(3 * 4))
    fds = array.array("i")
    for level, kind, payload in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(payload[: len(payload) - len(payload) % fds.itemsize])
    return data, list(fds)


def _reap(channel: socket.socket, numbers: dict[int, int]) -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        if pid in numbers:
            code = os.waitstatus_to_exitcode(status)
            _send(channel, {"number": numbers.pop(pid), "code": code})


def _send(channel: socket.socket, message: dict[str, Any]) -> None:
    with suppress(OSError):
        channel.send(json.dumps(message).encode())


def kill_descendants() -> None:
    """Kill every descendant of this process and return when none is left."""
    while True:
        targets = _descendants()
        if not targets:
            return
        for pid in targets:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.002)


def _descendants() -> set[int]:
    parents: dict[int, int] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError), open(f"/proc/{name}/stat", "rb") as line:
                parents[int(name)] = int(line.read().rpartition(b")")[2].split()[1])
    inside = {os.getpid()}
    while True:
        more = {pid for pid, parent in parents.items() if parent in inside} - inside
        if not more:
            return inside - {os.getpid()}
        inside |= more


if __name__ == "__main__":
    main()
