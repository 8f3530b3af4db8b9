"""Files of one sandbox, byte-exact, resolved inside its own view and never outside.

Every path is walked one component at a time from the sandbox's root directory, each opened
with O_NOFOLLOW below the one before: a symlink, absolute or with `..`, is read and walked from
the sandbox's root, so neither it nor a race with it can reach a file of this machine.
"""

from __future__ import annotations

import errno
import os
import posixpath
import stat
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

_MAX_LINKS = 40
_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# NONBLOCK: opening a FIFO must not hang the host.
_NO_SURPRISE = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the file system, as the sandbox names it."""

    path: str
    kind: str
    size: int
    mode: int
    mine: bool
    modified_ns: int
    target: str | None = None

    @property
    def name(self) -> str:
        """The last part of its path."""
        return posixpath.basename(self.path) or "/"

    @property
    def permissions(self) -> str:
        """Its type and mode as `ls` prints them."""
        return stat.filemode(self.mode)


@dataclass(frozen=True, slots=True)
class _Spot:
    folder: int
    name: str


class Tree:
    """The file system of one sandbox."""

    def __init__(
        self, root: int, home: str, *, forbidden_device: int | None = None, prefix: str = ""
    ) -> None:
        self._root = root
        self._home = home
        # /proc: this process may be root and could read there what the sandbox cannot.
        self._forbidden = forbidden_device
        # Where a sandbox has no root of its own, its processes know real paths.
        self._prefix = prefix

    def close(self) -> None:
        """Let go of the root directory."""
        os.close(self._root)

    def absolute(self, path: str) -> str:
        """Return the normal form of a path, relative ones counted from the home directory."""
        if "\0" in path or not path:
            raise OSError(errno.EINVAL, "invalid path", path)
        if path == "~" or path.startswith("~/"):
            path = self._home + path[1:]
        if self._prefix and (path == self._prefix or path.startswith(self._prefix + "/")):
            path = path[len(self._prefix) :] or "/"
        return posixpath.normpath("/" + posixpath.join(self._home, path).lstrip("/"))

    def stat(self, path: str) -> Entry:
        """Describe one entry, a symlink itself and not what it points to."""
        full = self.absolute(path)
        with self._spot(full, follow=False) as spot:
            return self._entry(spot.folder, spot.name, full)

    def is_directory(self, path: str) -> bool:
        """Tell whether a path, symlinks followed, is a directory."""
        try:
            with self._spot(self.absolute(path)) as spot:
                return stat.S_ISDIR(os.stat(spot.name, dir_fd=spot.folder).st_mode)
        except OSError:
            return False

    def list(self, path: str, depth: int = 1) -> list[Entry]:
        """Describe what is in a directory, down to a depth, symlinked directories not entered."""
        full = self.absolute(path)
        with self._spot(full) as spot:
            folder = os.open(spot.name, os.O_RDONLY | _FOLDER & ~os.O_PATH, dir_fd=spot.folder)
        try:
            return list(self._walk(folder, full, depth))
        finally:
            os.close(folder)

    def _walk(self, folder: int, path: str, depth: int) -> Iterator[Entry]:
        for name in sorted(os.listdir(folder)):
            try:
                entry = self._entry(folder, name, posixpath.join(path, name))
            except FileNotFoundError:
                continue
            yield entry
            if entry.kind == "directory" and depth > 1:
                with suppress(PermissionError, FileNotFoundError):
                    inner = os.open(name, os.O_RDONLY | _FOLDER & ~os.O_PATH, dir_fd=folder)
                    try:
                        yield from self._walk(inner, entry.path, depth - 1)
                    finally:
                        os.close(inner)

    def open_read(self, path: str) -> int:
        """Return an open descriptor of a regular file."""
        full = self.absolute(path)
        with self._spot(full) as spot:
            fd = os.open(spot.name, os.O_RDONLY | _NO_SURPRISE, dir_fd=spot.folder)
        return _regular(fd, full)

    def open_write(self, path: str) -> int:
        """Return an open descriptor of a file made empty, its parent directories made too."""
        full = self.absolute(path)
        with self._spot(full, parents=True) as spot:
            flags = os.O_WRONLY | os.O_CREAT | _NO_SURPRISE
            try:
                fd = os.open(spot.name, flags, 0o644, dir_fd=spot.folder)
            except OSError as error:
                if error.errno == errno.ENXIO:  # a FIFO that nobody reads
                    raise PermissionError(errno.EPERM, "not a regular file", full) from error
                raise
        fd = _regular(fd, full)
        os.ftruncate(fd, 0)
        return fd

    def make_directory(self, path: str) -> Entry:
        """Make a directory with its parents; one that is there already is an error."""
        full = self.absolute(path)
        with self._spot(full, parents=True) as spot:
            os.mkdir(spot.name, 0o755, dir_fd=spot.folder)
            return self._entry(spot.folder, spot.name, full)

    def move(self, source: str, destination: str) -> Entry:
        """Rename an entry; the destination's parent directories are made."""
        full = self.absolute(destination)
        with (
            self._spot(self.absolute(source), follow=False) as old,
            self._spot(full, follow=False, parents=True) as new,
        ):
            os.rename(old.name, new.name, src_dir_fd=old.folder, dst_dir_fd=new.folder)
            return self._entry(new.folder, new.name, full)

    def remove(self, path: str) -> None:
        """Remove an entry, a directory with all that is in it."""
        with self._spot(self.absolute(path), follow=False) as spot:
            _remove(spot.folder, spot.name)

    def _entry(self, folder: int, name: str, path: str) -> Entry:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        kind, target = _kind(found.st_mode), None
        if kind == "symlink":
            target = os.readlink(name, dir_fd=folder)
        return Entry(
            path=path,
            kind=kind,
            size=found.st_size,
            mode=found.st_mode,
            mine=found.st_uid == os.geteuid() and not path.startswith(("/usr", "/etc", "/bin")),
            modified_ns=found.st_mtime_ns,
            target=target,
        )

    @contextmanager
    def _spot(self, path: str, *, follow: bool = True, parents: bool = False) -> Iterator[_Spot]:
        """Find the directory that holds a path's last part, and keep it open."""
        stack = [os.dup(self._root)]
        try:
            name = _descend(stack, path, follow=follow, parents=parents)
            if self._forbidden is not None and os.fstat(stack[-1]).st_dev == self._forbidden:
                raise PermissionError(errno.EACCES, "not available here", path)
            yield _Spot(stack[-1], name)
        finally:
            for fd in stack:
                os.close(fd)


def _descend(stack: list[int], path: str, *, follow: bool, parents: bool) -> str:
    """Walk down, keeping the directories on the way open; return the last part's name."""
    pending = deque(part for part in path.split("/") if part not in ("", "."))
    links = 0
    while pending:
        part = pending.popleft()
        if part == "..":
            if len(stack) > 1:  # the root's parent is the root
                os.close(stack.pop())
            continue
        target = _link(stack[-1], part) if pending or follow else None
        if target is not None:
            links += 1
            if links > _MAX_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
            if target.startswith("/"):
                while len(stack) > 1:
                    os.close(stack.pop())
            steps = [step for step in target.split("/") if step not in ("", ".")]
            pending.extendleft(reversed(steps))
        elif pending:
            stack.append(_enter(stack[-1], part, make=parents))
        else:
            return part
    return "."


def _link(folder: int, name: str) -> str | None:
    try:
        return os.readlink(name, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.ENOENT):
            return None
        raise


def _enter(folder: int, name: str, *, make: bool) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=folder)
    except FileNotFoundError:
        if not make:
            raise
    with suppress(FileExistsError):
        os.mkdir(name, 0o755, dir_fd=folder)
    return os.open(name, _FOLDER, dir_fd=folder)


def _regular(fd: int, path: str) -> int:
    mode = os.fstat(fd).st_mode
    if stat.S_ISREG(mode):
        return fd
    os.close(fd)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "is a directory", path)
    raise PermissionError(errno.EPERM, "not a regular file", path)


def _remove(folder: int, name: str) -> None:
    mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    if not stat.S_ISDIR(mode):
        os.unlink(name, dir_fd=folder)
        return
    inner = os.open(name, os.O_RDONLY | _FOLDER & ~os.O_PATH, dir_fd=folder)
    try:
        for child in os.listdir(inner):
            _remove(inner, child)
    finally:
        os.close(inner)
    os.rmdir(name, dir_fd=folder)


def _kind(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "directory"
    if stat.S_ISLNK(mode):
        return "symlink"
    return "file" if stat.S_ISREG(mode) else "other"
