"""Files of an account as bytes: what tests read and write is small."""

from __future__ import annotations

from sandbox_router.ports import Content, HoldsFiles, Ref


def read(account: HoldsFiles, ref: Ref, path: str, limit: int) -> bytes:
    with account.read_file(ref, path, limit) as pieces:
        return b"".join(pieces)


def write(account: HoldsFiles, ref: Ref, path: str, data: bytes) -> None:
    account.write_file(ref, path, Content.of(data))
