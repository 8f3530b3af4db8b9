"""What a deployment stands on: table, queue, bus, vault, time, names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ..model.event import Event
from ..model.secret import Secret
from ..table import EVERYTHING, Item, Key, Page, Range, Write


class Table(Protocol):
    """Storage with DynamoDB's semantics (see `table`). Raises ConditionFailed, Contended, Lost."""

    def get(self, key: Key, *, consistent: bool = True) -> Item | None:
        """One item, or None."""
        ...

    def write(self, *writes: Write) -> None:
        """All of the writes or none; at most 100, each on another key."""
        ...

    def query(
        self,
        index: str | None,
        hash: str,
        range: Range = EVERYTHING,
        *,
        limit: int = 100,
        cursor: str | None = None,
        descending: bool = False,
    ) -> Page:
        """Items of one partition in sort order; `index` None is the base table, consistent.
        Indexes may lag.
        """
        ...


@dataclass(frozen=True)
class Message:
    """ "Look at this record": all a message ever says. `receipt` acknowledges it."""

    record_id: str
    receipt: str
    received: int = 1


class Queue(Protocol):
    """At-least-once, delayed messages. Raises StoreBusy."""

    def send(self, queue: str, record_id: str, delay_seconds: float = 0) -> None:
        """Deliver after the delay (at most 900 s); equal messages may be merged."""
        ...


class Bus(Protocol):
    """Tells other systems what happened. Raises StoreBusy."""

    def publish(self, events: Sequence[Event]) -> None:
        """Every event, in this order; when it raises, any of them may have been told."""
        ...


class DeadLetters(Protocol):
    """What was sent to us and cannot be taken, for a person to look at. Raises StoreBusy."""

    def add(self, letter: Mapping[str, Any]) -> None:
        """Keep it: names and reasons, JSON, never the values that were sent."""
        ...


class Clock(Protocol):
    """Time."""

    def now(self) -> int:
        """Milliseconds since the epoch."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class Ids(Protocol):
    """Unguessable names."""

    def sandbox(self) -> str:
        """`sbx-` and 26 lower-case base32 characters."""
        ...

    def snapshot(self) -> str:
        """`snap-` and 26 such characters."""
        ...

    def nonce(self) -> str:
        """A claim's nonce, unique in time and space."""
        ...

    def jitter(self) -> float:
        """A number in [0, 1)."""
        ...


class Vault(Protocol):
    """Seals secrets that must be stored (hand-over, access tokens), bound to one record id."""

    def seal(self, record_id: str, secrets: Mapping[str, Secret]) -> bytes:
        """Ciphertext of the secrets."""
        ...

    def unseal(self, record_id: str, sealed: bytes) -> Mapping[str, Secret]:
        """The secrets; raises Internal when they are not ours or were bound to another id."""
        ...
