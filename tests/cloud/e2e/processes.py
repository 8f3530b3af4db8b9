"""Processes of a test: started in a session of their own, and ended with everything they began."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path

END_SECONDS = 10.0


class Child:
    """A process we started, with its output in a file; whoever it starts is in its group."""

    def __init__(self, command: list[str], env: dict[str, str], cwd: Path, log: Path) -> None:
        self.log = log
        with log.open("ab") as out:
            self.process = subprocess.Popen(
                command,
                cwd=cwd,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    def alive(self) -> bool:
        return self.process.poll() is None

    def children(self) -> dict[int, str]:
        """The processes of its group, itself left out: pid -> what is known of their start."""
        found = {}
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == self.pid:
                continue
            with suppress(OSError):
                if os.getpgid(int(entry.name)) == self.pid:
                    environ = (entry / "environ").read_bytes()
                    found[int(entry.name)] = environ.decode(errors="replace")
        return found

    def end(self) -> None:
        """SIGTERM, and SIGKILL for whoever of the group is still there."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(END_SECONDS)
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.process.wait(END_SECONDS)

    def last_words(self, lines: int = 40) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])


def free_port() -> int:
    """A loopback port nobody has now."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def listening(port: int, child: Child, seconds: float) -> None:
    """Wait until it takes connections; a failure says its last words."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and child.alive():
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    raise AssertionError(f"nothing listens on {port}: {child.last_words()}")
