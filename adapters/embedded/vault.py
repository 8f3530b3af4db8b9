"""The vault of one machine: its key is a file."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from adapters.sealing import KEY_SIZE, BoxVault
from sandbox_router.model.failure import Internal


class FileVault(BoxVault):
    """`ports.Vault` with the key in a file only its owner can read, made when missing."""

    def __init__(self, key_path: str | Path) -> None:
        path = Path(key_path)
        if not path.exists():
            _make(path)
        if path.stat().st_mode & 0o077:
            raise Internal("the vault's key file can be read by others than its owner")
        super().__init__(path.read_bytes())


def _make(path: Path) -> None:
    own = path.with_name(f"{path.name}.{os.urandom(8).hex()}")
    with os.fdopen(os.open(own, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(os.urandom(KEY_SIZE))
        file.flush()
        os.fsync(file.fileno())
    with suppress(FileExistsError):
        os.link(own, path)  # whole or not at all, and only the first of two processes
    own.unlink()
    folder = os.open(path.parent, os.O_RDONLY)
    os.fsync(folder)  # a key lost with the power would take every sealed value along
    os.close(folder)
