"""The folder a local deployment lives in: private, locked by its router, readable by its tests."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import time
from dataclasses import dataclass
from pathlib import Path

from infra.local.options import BadOption
from infra.local.process import Process

PATIENCE_SECONDS = 0.3
"""Somebody who only looks whether the lock is taken holds it for a moment."""


class AlreadyRunning(Exception):
    """Another router holds this folder."""


class State:
    """Paths and private files under STATE."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.key = path / "key"
        self.pid = path / "router.pid"
        self.log = path / "router.log"
        self.card = path / "router.json"
        self.lock = path / "router.lock"
        self.stopper = path / "stop.json"
        self.database = path / "router.db"
        self.pools = path / "pools.json"
        self.pools_resolved = path / "pools.resolved.json"
        self.pepper = path / "pepper"
        self.vault = path / "vault.key"
        self.calls = path / "calls"
        self.host = path / "host"
        self.host_config = path / "host-accounts.json"
        self.host_json = path / "host.json"
        self.host_log = path / "host.log"

    @property
    def exists(self) -> bool:
        """Is anything of ours here?"""
        ours = (self.lock, self.pools, self.pools.with_suffix(".toml"))
        return any(path.is_file() for path in ours)

    def prepare(self) -> None:
        """Make the folder, for its owner only; raises BadOption, also for somebody else's."""
        try:
            if not self.exists and self.path.is_dir() and any(self.path.iterdir()):
                raise BadOption(
                    f"STATE={str(self.path)!r} holds other files and no records of a router;"
                    " name a new or an empty folder"
                )
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.path.chmod(0o700)
        except OSError as error:
            raise BadOption(f"STATE={str(self.path)!r} cannot be used: {error.strerror}") from error
        if not os.access(self.path, os.W_OK | os.X_OK):
            raise BadOption(f"STATE={str(self.path)!r} cannot be written")

    def secret(self, path: Path, size: int = 32) -> bytes:
        """The random bytes kept in a private file, made the first time."""
        if not path.exists():
            write_private(path, secrets.token_hex(size).encode())
        return bytes.fromhex(path.read_text().strip())

    def locked(self) -> bool:
        """Does a router (or a `stop`) hold this folder now?"""
        if not self.lock.exists():
            return False
        with self.lock.open("rb") as held:
            try:
                fcntl.flock(held, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    def stopping(self) -> bool:
        """Is a `stop` at work here, which destroys what runs?"""
        card = Card.read(self.stopper)
        return card is not None and card.process.alive

    def router(self) -> Card | None:
        """The living router of this folder. The card of a dead one never names another process."""
        card = Card.read(self.card)
        return card if card and card.process.alive and self.locked() else None


@dataclass(frozen=True)
class Card:
    """How to reach a router: its process and its address."""

    process: Process
    url: str

    @classmethod
    def read(cls, path: Path) -> Card | None:
        """The card in a file, or None when there is no readable one."""
        try:
            data = json.loads(path.read_text())
            return cls(Process(int(data["pid"]), str(data["started"])), str(data["url"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def write(self, path: Path) -> None:
        """Leave it for others."""
        data = {"pid": self.process.pid, "started": self.process.started, "url": self.url}
        write_private(path, json.dumps(data).encode())


class Lock:
    """One router per folder, kept by the system: it cannot outlive its process."""

    def __init__(self, state: State) -> None:
        """Take it; raises AlreadyRunning."""
        self._state = state
        # Never removed: a lock on a removed file would let a second router in.
        self._file = os.open(state.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self._taken():
            if time.monotonic() >= deadline:
                os.close(self._file)
                raise AlreadyRunning
            time.sleep(0.05)
        write_private(state.pid, str(os.getpid()).encode())

    def _taken(self) -> bool:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def release(self) -> None:
        """Give it back."""
        self._state.pid.unlink(missing_ok=True)
        self._state.card.unlink(missing_ok=True)
        os.close(self._file)


def write_private(path: Path, data: bytes) -> None:
    """Replace a file at once, readable by its owner only; on the disk before it returns."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(file, "wb") as out:  # all of it: a bare write may stop where the disk does
            out.write(data + b"\n")
            out.flush()
            os.fsync(file)
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
