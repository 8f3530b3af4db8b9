"""Objects in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from sandbox_router.model.failure import NotFound
from sandbox_router.ports import Content, Signed


@dataclass
class MemoryObjects:
    """`ports.Objects`; `signed` are the requests it would admit: (method, key, seconds, size)."""

    kept: dict[str, bytes] = field(default_factory=dict)
    signed: list[tuple[str, str, int, int | None]] = field(default_factory=list)

    def put(self, key: str, pieces: Iterable[bytes]) -> int:
        self.kept[key] = b"".join(pieces)
        return len(self.kept[key])

    @contextmanager
    def read(self, key: str) -> Iterator[Content]:
        if key not in self.kept:
            raise NotFound
        data = self.kept[key]
        yield Content(len(data), iter((data[:7], data[7:])))

    def forget(self, key: str) -> None:
        self.kept.pop(key, None)

    def upload(self, key: str, *, seconds: int, size: int | None) -> Signed:
        self.signed.append(("PUT", key, seconds, size))
        return Signed("PUT", f"https://objects.example/{key}?put={size}", {})

    def download(self, key: str, *, seconds: int) -> Signed:
        self.signed.append(("GET", key, seconds, None))
        return Signed("GET", f"https://objects.example/{key}?get", {})
