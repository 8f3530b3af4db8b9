"""Files on their way between a client and a sandbox, kept for a while outside of both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True)
class Content:
    """Bytes in pieces, to be taken once. size: of all of them together."""

    size: int
    pieces: Iterable[bytes] = field(repr=False)

    @classmethod
    def of(cls, data: bytes) -> Content:
        """What is in memory already."""
        return cls(len(data), (data,))


@dataclass(frozen=True)
class Signed:
    """A request that whoever knows its URL may make: a secret of its client's."""

    method: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


class Objects(Protocol):
    """Bytes under keys for about a day, then gone by themselves. Raises StoreBusy, after which a
    call may be repeated; what `pieces` raise passes through.
    """

    def put(self, key: str, pieces: Iterable[bytes]) -> int:
        """Keep them all under a key, in place of what was there, or none; how many bytes."""
        ...

    def read(self, key: str) -> AbstractContextManager[Content]:
        """What is kept under a key; raises NotFound. Pieces that end without an error were all."""
        ...

    def forget(self, key: str) -> None:
        """Keep it no longer; there may be nothing."""
        ...

    def upload(self, key: str, *, seconds: int, size: int | None) -> Signed:
        """For so many seconds anybody may put bytes under the key by it: exactly `size` of them,
        where that is said.
        """
        ...

    def download(self, key: str, *, seconds: int) -> Signed:
        """For so many seconds anybody may read what is under the key by it, and nothing else."""
        ...
