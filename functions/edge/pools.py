"""Pools out of a document that may change while the process lives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sandbox_router.model.pool import Pool
from sandbox_router.ports import Pools, Provider

from .log import log
from .settings import BadSetting


@dataclass(frozen=True)
class Document:
    """What a pools' file would hold, JSON, kept elsewhere. name: what errors call it."""

    name: str
    text: str = field(repr=False)

    def __str__(self) -> str:
        return self.name


class RenewedPools:
    """`ports.Pools`, made again when the document has changed.

    A document that cannot be used is an error at the start only: later what there is stays.
    """

    def __init__(self, kept: Callable[[], Document], made: Callable[[Document], Pools]) -> None:
        self._kept, self._made = kept, made
        self._document = kept()
        self._pools = made(self._document)

    def all(self) -> Sequence[Pool]:
        return self._now().all()

    def pool(self, pool_id: str) -> Pool:
        return self._now().pool(pool_id)

    def provider(self, pool_id: str) -> Provider:
        return self._now().provider(pool_id)

    def _now(self) -> Pools:
        document = self._kept()
        if document != self._document:
            self._document = document  # a bad one too: it is tried, and said, once
            try:
                self._pools = self._made(document)
            except BadSetting as error:
                log().error("pools unchanged", extra={"reason": str(error)})
        return self._pools
