"""Captures: copies of instances' disks, each an account's, that outlive what they were taken from.

A ready one is a directory with its facts and its tree, and survives this host's restarts; one that
is not ready is gone with them. Memory is not captured: this engine cannot.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import string
import subprocess
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from enum import Enum
from pathlib import Path

from infra.local.host.instance import Instance, Template, now_ms
from infra.local.host.spawn import PLAIN_ENV

_ALPHABET = string.ascii_lowercase + string.digits
_FACTS = "capture.json"
_DISK = ("home", "tmp", "root")
"""What of an instance's directory is its disk, whatever its walls."""


class CaptureError(RuntimeError):
    """A disk could not be copied."""


class CaptureState(Enum):
    """Where a capture is in its life."""

    CREATING = "creating"
    READY = "ready"
    FAILED = "failed"
    DELETING = "deleting"


@dataclass(slots=True)
class Capture:
    """One capture: whose it is, what of, and how far. `size`: of the instance it was taken from."""

    id: str
    account: str
    dialect: str
    name: str | None
    source: str
    size: Template
    created_ms: int = field(default_factory=now_ms)
    ready_ms: int | None = None
    bytes: int | None = None
    state: CaptureState = CaptureState.CREATING


class Captures:
    """The captures of all accounts, kept in one directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._known: dict[str, Capture] = {}

    def prepare(self) -> None:
        """Know again what an earlier host kept; what it did not finish is removed."""
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        for folder in sorted(self._directory.iterdir()):
            try:
                facts = json.loads((folder / _FACTS).read_text(encoding="utf-8"))
            except FileNotFoundError:
                remove_directory(folder)
                continue
            size = Template(**facts.pop("size"))
            kept = Capture(**facts, size=size, state=CaptureState.READY)
            self._known[kept.id] = kept

    def all(self) -> Iterable[Capture]:
        """Return every capture there is, oldest first."""
        return sorted(self._known.values(), key=lambda one: (one.created_ms, one.id))

    def of(self, account: str) -> list[Capture]:
        """Return an account's captures, oldest first."""
        return [one for one in self.all() if one.account == account]

    def find(self, capture_id: str, account: str) -> Capture | None:
        """Return a capture of an account."""
        capture = self._known.get(capture_id)
        return capture if capture is not None and capture.account == account else None

    def begin(self, instance: Instance, name: str | None) -> Capture:
        """Make one that is not ready yet."""
        capture_id = "c" + "".join(secrets.choice(_ALPHABET) for _ in range(19))
        request = instance.request
        capture = Capture(
            capture_id, request.account, request.dialect, name, instance.id, instance.template
        )
        self._known[capture_id] = capture
        return capture

    def fill(self, capture: Capture, directory: Path) -> None:
        """Copy an instance's disk; nothing in it may run meanwhile."""
        copy_disk(directory, self._tree(capture))
        capture.bytes = _size(self._tree(capture))

    def finish(self, capture: Capture) -> None:
        """Make a filled one ready, and lasting."""
        capture.ready_ms = now_ms()
        self._write(capture)
        capture.state = CaptureState.READY

    def fail(self, capture: Capture) -> None:
        """Keep one as failed, without content."""
        capture.state = CaptureState.FAILED
        remove_directory(self._folder(capture))

    def restore(self, capture: Capture, directory: Path) -> None:
        """Copy a capture's tree to where a new instance's disk is."""
        copy_disk(self._tree(capture), directory)

    def replace(self, old: Capture, new: Capture) -> None:
        """Give an old one the content of a new one, which is no more."""
        remove_directory(self._tree(old))
        self._tree(new).rename(self._tree(old))
        old.bytes, old.ready_ms = new.bytes, new.ready_ms
        self._write(old)
        self.remove(new)

    def remove(self, capture: Capture) -> None:
        """End one. Again is harmless."""
        self._known.pop(capture.id, None)
        folder = self._folder(capture)
        (folder / _FACTS).unlink(missing_ok=True)  # first: half a tree must not come back
        remove_directory(folder)

    def _folder(self, capture: Capture) -> Path:
        return self._directory / capture.id

    def _tree(self, capture: Capture) -> Path:
        return self._folder(capture) / "tree"

    def _write(self, capture: Capture) -> None:
        facts = {name: value for name, value in asdict(capture).items() if name != "state"}
        draft = self._folder(capture) / f".{_FACTS}"
        draft.write_text(json.dumps(facts), encoding="utf-8")
        draft.replace(self._folder(capture) / _FACTS)


def copy_disk(source: Path, target: Path) -> None:
    """Copy a disk as it is: links, modes, times, holes. What is there already stays."""
    target.mkdir(mode=0o700, parents=True, exist_ok=True)
    parts = [str(source / part) for part in _DISK if (source / part).is_dir()]
    done = subprocess.run(
        ["cp", "-a", "--reflink=auto", "--", *parts, str(target)],
        env=dict(PLAIN_ENV),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    if done.returncode:
        raise CaptureError(done.stderr.decode("utf-8", "replace").strip() or "the copy failed")


def remove_directory(directory: Path) -> None:
    """Remove a directory even where its owner took his own rights away."""
    shutil.rmtree(directory, ignore_errors=True)
    if not directory.exists():
        return
    for folder, names, _ in os.walk(directory):
        for name in names:
            path = os.path.join(folder, name)
            if not os.path.islink(path):
                os.chmod(path, 0o700)
    shutil.rmtree(directory)


def _size(directory: Path) -> int:
    total = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            with suppress(OSError):
                total += os.lstat(os.path.join(folder, name)).st_blocks * 512
    return total
