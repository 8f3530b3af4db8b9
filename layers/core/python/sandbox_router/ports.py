"""What the core needs from the world, as protocols. Nothing here does anything.

Every call may raise; what it may raise is said once, at the protocol. Adapters translate
everything else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from .model.event import Event
from .model.pool import Pool
from .model.secret import Secret
from .model.size import Shape
from .model.spec import Cargo
from .table import EVERYTHING, Item, Key, Page, Range, Write


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
    """ "Look at this sandbox": all a message ever says. `receipt` acknowledges it."""

    sandbox_id: str
    receipt: str
    received: int = 1


class Queue(Protocol):
    """At-least-once, delayed messages. Raises StoreBusy."""

    def send(self, queue: str, sandbox_id: str, delay_seconds: float = 0) -> None:
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

    def nonce(self) -> str:
        """A claim's nonce, unique in time and space."""
        ...

    def jitter(self) -> float:
        """A number in [0, 1)."""
        ...


class Vault(Protocol):
    """Seals secrets that must be stored (hand-over, access tokens), bound to one sandbox id."""

    def seal(self, sandbox_id: str, secrets: Mapping[str, Secret]) -> bytes:
        """Ciphertext of the secrets."""
        ...

    def unseal(self, sandbox_id: str, sealed: bytes) -> Mapping[str, Secret]:
        """The secrets; raises Internal when they are not ours or were bound to another id."""
        ...


InstanceState = Literal["starting", "running", "pausing", "paused", "stopped", "failed"]


@dataclass(frozen=True)
class Instance:
    """The provider's side: identity, truthful state, retained tags. Times in ms.

    access: names and secrets later calls need (data host, tokens); kept sealed by the store.
    """

    id: str
    state: InstanceState
    tags: Mapping[str, str] = field(default_factory=dict)
    shape: Shape | None = None
    created_at: int | None = None
    ends_at: int | None = None
    access: Mapping[str, Secret] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Order:
    """Everything a provider needs to make one instance. `tags` are identity tags and labels
    together.

    lifetime_seconds: the provider's own limit to set; the same at every repeat of one identity.
    """

    identity: str
    reference: str
    shape: Shape
    tags: Mapping[str, str]
    lifetime_seconds: int
    cargo: Cargo = field(default_factory=Cargo, repr=False)


@dataclass(frozen=True)
class Ref:
    """A live instance and what calls to it need."""

    instance_id: str
    access: Mapping[str, Secret] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class InstancePage:
    """One page of a provider's list; `cursor` None at the end."""

    instances: tuple[Instance, ...]
    cursor: str | None


class Provider(Protocol):
    """One account at one provider. Raises ProviderFailure classes only; `timeout` is in seconds,
    in total.
    """

    def verify(self) -> None:
        """A cheap authenticated read that changes nothing; raises BrokenPool, Permission,
        RateLimited, Outage.
        """
        ...

    def create(self, order: Order, *, timeout: float) -> Instance:
        """Make an instance under the order's identity; a repeat finds the first where the profile
        says so.
        """
        ...

    def find(self, tags: Mapping[str, str]) -> Instance | None:
        """The instance retaining exactly these identity tags, if the provider shows one now."""
        ...

    def get(self, instance_id: str) -> Instance | None:
        """Its truthful state; None means the provider says it is gone."""
        ...

    def destroy(self, instance_id: str) -> None:
        """Ask for its end, dependents included; gone already is success."""
        ...

    def instances(self, cursor: str | None) -> InstancePage:
        """One page of all the account's instances that carry our tags."""
        ...


@runtime_checkable
class Extends(Protocol):
    """The provider's own lifetime limit can be moved."""

    def extend(self, instance_id: str, lifetime_seconds: int) -> None:
        """Set the limit to this many seconds from now; raises Gone."""
        ...


@runtime_checkable
class Pauses(Protocol):
    """Instances can be paused and resumed; both are safe to repeat."""

    def pause(self, instance_id: str, keep: str) -> None:
        """Pause, keeping `memory` or `disk`; raises Gone."""
        ...

    def resume(self, instance_id: str, lifetime_seconds: int) -> Instance:
        """Resume with an explicit remaining lifetime; raises Gone."""
        ...


@dataclass(frozen=True)
class Command:
    """One command; `shell` text or `argv`, never both. Never logged."""

    argv: tuple[str, ...] | None = field(default=None, repr=False)
    shell: str | None = field(default=None, repr=False)
    cwd: str | None = None
    env: Mapping[str, Secret] = field(default_factory=dict, repr=False)
    stdin: bytes | None = field(default=None, repr=False)
    timeout_seconds: float = 60.0


@dataclass(frozen=True)
class Output:
    """Bytes a command wrote, as they came; none are a sign that it still runs."""

    stream: Literal["stdout", "stderr"]
    data: bytes


@dataclass(frozen=True)
class Exit:
    """How a command ended; exit_code None when the provider does not say (never invented)."""

    exit_code: int | None
    signal: str | None = None
    timed_out: bool = False


@runtime_checkable
class RunsCommands(Protocol):
    """Commands run inside a live instance."""

    def run(self, ref: Ref, command: Command) -> Iterator[Output | Exit]:
        """Output in order, then exactly one Exit; raises Unknown when the answer is lost, Gone,
        Refused. Closing the iterator ends the command; a silent one yields signs of life every few
        seconds where the provider has them, so that closing is not late.
        """
        ...


@dataclass(frozen=True)
class Entry:
    """One directory entry. Size in bytes, modified_at in ms."""

    name: str
    path: str
    kind: Literal["file", "directory", "symlink", "other"]
    size: int | None
    modified_at: int | None


@runtime_checkable
class HoldsFiles(Protocol):
    """Files inside a live instance; paths are absolute and arrive byte-exact. Raises FileMissing,
    Gone.
    """

    def read_file(self, ref: Ref, path: str, limit: int) -> bytes:
        """The whole content; raises TooLarge over `limit` bytes."""
        ...

    def write_file(self, ref: Ref, path: str, data: bytes) -> None:
        """Create or replace; parents are created."""
        ...

    def remove_file(self, ref: Ref, path: str) -> None:
        """Remove a file or a directory with its content."""
        ...

    def list_directory(self, ref: Ref, path: str) -> tuple[Entry, ...]:
        """Direct children, by name."""
        ...


@dataclass(frozen=True)
class Endpoint:
    """A preview URL and the headers it wants; `token` is shown to the client once asked for."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    visibility: Literal["private", "public"] = "private"
    expires_at: int | None = None


@runtime_checkable
class OpensPorts(Protocol):
    """Ports of a live instance can be reached from outside, privately."""

    def open_port(self, ref: Ref, port: int) -> Endpoint:
        """The preview endpoint of a port."""
        ...

    def close_port(self, ref: Ref, port: int) -> None:
        """End the exposure where the provider has one to end."""
        ...


class Pools(Protocol):
    """The operator's pools and the providers behind them."""

    def all(self) -> Sequence[Pool]:
        """Every pool, in the operator's order."""
        ...

    def pool(self, pool_id: str) -> Pool:
        """One pool; raises NotFound."""
        ...

    def provider(self, pool_id: str) -> Provider:
        """The account behind the pool; raises NotFound."""
        ...
