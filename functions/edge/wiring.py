"""The composition root: settings in, one Router per process out. Only here adapters are built."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from functions.catalog import BUFFERED_SECONDS, Http
from sandbox_router.model.failure import Invalid, NotFound
from sandbox_router.model.pool import Pool
from sandbox_router.model.secret import Secret
from sandbox_router.ports import (
    Bus,
    Clock,
    DeadLetters,
    Ids,
    Objects,
    Provider,
    Queue,
    Table,
    Vault,
)
from sandbox_router.router import Router

from .config import EventSource, PoolConfig, read, read_sources
from .pools import Document, RenewedPools
from .settings import BadSetting, Names, Settings

if TYPE_CHECKING:
    from adapters.aws.deployment import Deployment

T = TypeVar("T")
PEPPER_BYTES = 16
ANSWER_SECONDS = 2.5
"""For what comes after the last provider call: what was learnt is stored, the answer is written."""


class Wrap(Protocol):
    """Puts something around a port: tests count its calls, or die before one."""

    def __call__(self, port: T, /) -> T: ...


def as_it_is(port: T, /) -> T:
    """No wrapping."""
    return port


class Waited(Protocol):
    """Seconds this call has waited for providers."""

    seconds: float


@contextmanager
def waiting(row: Http) -> Iterator[Waited]:
    """Count what this context waits for providers, and end it before the gateway stops waiting for
    the row's function: an answer that comes later reaches nobody.
    """
    from adapters.providers import http

    with http.waiting(seconds(row)) as waited:
        yield waited


def seconds(row: Http) -> float:
    """How long a call of the row's function may wait for providers."""
    limit = row.timeout if row.stream and streaming() else min(row.timeout, BUFFERED_SECONDS)
    return limit - ANSWER_SECONDS


@dataclass(frozen=True)
class Backend:
    """Everything of a deployment that is not policy. pepper, pools: where they are in no file."""

    table: Table
    queue: Queue
    vault: Vault
    objects: Objects
    clock: Clock
    ids: Ids
    pepper: Callable[[], Secret] | None = None
    pools: Callable[[], Document] | None = None


def embedded(settings: Settings) -> Backend:
    """The backend of one machine; its state folder must exist."""
    from adapters.embedded.queue import SqliteQueue
    from adapters.embedded.table import SqliteTable
    from adapters.embedded.vault import FileVault
    from adapters.folder import FolderObjects
    from adapters.system import SystemClock, SystemIds

    clock = SystemClock()
    return Backend(
        table=SqliteTable(settings.table_file),
        queue=SqliteQueue(settings.queue_file, clock),
        vault=FileVault(settings.vault_file),
        objects=FolderObjects(
            settings.objects_folder, settings.objects_url, partial(_pepper, settings), clock
        ),
        clock=clock,
        ids=SystemIds(),
    )


def aws(settings: Settings) -> Backend:
    """The backend of one deployment on AWS."""
    from adapters.system import SystemClock, SystemIds

    behind = _deployment(settings)
    return Backend(
        table=behind.table,
        queue=behind.queue,
        vault=behind.vault,
        objects=behind.objects,
        clock=SystemClock(),
        ids=SystemIds(),
        pepper=partial(behind.secret, "pepper"),
        pools=partial(_kept_pools, behind),
    )


def _deployment(settings: Settings) -> Deployment:
    if settings.aws is None:
        raise BadSetting("BACKEND=aws needs the names of what was deployed")
    return _made(settings.aws)


@lru_cache(maxsize=1)
def _made(names: Names) -> Deployment:
    """One session for everything of a process."""
    from adapters.aws.deployment import Deployment

    return Deployment(**vars(names))


def _kept_pools(behind: Deployment) -> Document:
    return Document("the secret with the pools", behind.secret("pools").reveal())


BACKENDS: Mapping[str, Callable[[Settings], Backend]] = {"aws": aws, "embedded": embedded}


@dataclass(frozen=True)
class Outward:
    """The ways to and from other systems: our events, what we could not take, who may send (read
    when first asked for: whoever only publishes need not be able to).
    """

    bus: Bus
    letters: DeadLetters
    sources: Callable[[], Mapping[str, EventSource]]


def journals(settings: Settings) -> Outward:
    """Those of one machine: files in its state folder."""
    from adapters.journal import Journal

    return Outward(
        bus=Journal(settings.events_file),
        letters=Journal(settings.letters_file),
        sources=cache(partial(read_sources, settings.pools_file)),
    )


def arrivals(event: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """New items out of an event of the table's stream, each behind its place there."""
    from adapters.aws.stream import arrivals

    return arrivals(event)


def bridges(settings: Settings) -> Outward:
    """Those of a deployment on AWS."""
    behind = _deployment(settings)
    return Outward(behind.bus, behind.letters, lambda: read_sources(_kept_pools(behind)))


OUTWARD: Mapping[str, Callable[[Settings], Outward]] = {"aws": bridges, "embedded": journals}


def build(settings: Settings, wrap: Wrap = as_it_is, backend: Backend | None = None) -> Router:
    """A Router over the settings' backend, or over one that is there already."""
    behind = backend or BACKENDS[settings.backend](settings)
    pepper = _checked(behind.pepper(), "its secret") if behind.pepper else _pepper(settings)
    made = partial(ConfiguredPools, settings, wrap)
    return Router(
        table=wrap(behind.table),
        queue=wrap(behind.queue),
        pools=RenewedPools(behind.pools, made) if behind.pools else made(),
        vault=behind.vault,
        objects=wrap(behind.objects),
        clock=behind.clock,
        ids=behind.ids,
        deployment=settings.deployment or _named_after(pepper),
        pepper=pepper,
    )


def _pepper(settings: Settings) -> Secret:
    path = settings.pepper_file
    try:
        text = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        raise BadSetting(f"{path}: the pepper cannot be read") from None
    return _checked(Secret(text), str(path))


def _checked(pepper: Secret, where: str) -> Secret:
    if len(pepper.reveal()) < PEPPER_BYTES:
        raise BadSetting(f"{where}: a pepper has at least {PEPPER_BYTES} characters")
    return pepper


def _named_after(pepper: Secret) -> str:
    """A deployment nobody named: the same as long as its secrets are."""
    digest = hashlib.sha256(b"deployment\0" + pepper.reveal().encode()).hexdigest()
    return f"local-{digest[:32]}"


class ConfiguredPools:
    """`ports.Pools` out of the operator's file; a provider is opened when it is first asked for."""

    def __init__(
        self, settings: Settings, wrap: Wrap = as_it_is, document: Document | None = None
    ) -> None:
        from adapters.providers import KINDS, profile

        source = document or settings.pools_file
        rows = read(source, frozenset(KINDS), settings.variables)
        profiles = {kind: profile(kind) for kind in {row.kind for row in rows}}
        self._rows = {row.id: row for row in rows}
        self._pools = {
            row.id: Pool(
                id=row.id,
                profile=profiles[row.kind],
                position=n,
                region=row.region,
                geo=row.geo,
                max_ttl=row.max_ttl_seconds,
                isolation=row.isolation or profiles[row.kind].isolation,
                images=row.images,
                any_size=row.any_size,
                draining=row.draining,
            )
            for n, row in enumerate(rows)
        }
        self._all = tuple(self._pools.values())
        self._open: dict[str, Provider] = {}
        self._opening = threading.Lock()
        self._wrap = wrap
        for row in rows:  # a wrong setting shows at the start, not at the first create
            if row.any_size and profiles[row.kind].sizes is None:
                where = f"{source}: images.{min(row.any_size)}"
                raise BadSetting(f"{where} needs a size for kind {row.kind!r}")
            _open(row, source)

    def all(self) -> Sequence[Pool]:
        return self._all

    def pool(self, pool_id: str) -> Pool:
        try:
            return self._pools[pool_id]
        except KeyError:
            raise NotFound from None

    def provider(self, pool_id: str) -> Provider:
        if (found := self._open.get(pool_id)) is not None:
            return found
        if pool_id not in self._rows:
            raise NotFound
        with self._opening:
            if pool_id not in self._open:
                self._open[pool_id] = self._wrap(_open(self._rows[pool_id]))
            return self._open[pool_id]


def _open(row: PoolConfig, source: object = "the pools' file") -> Provider:
    from adapters.providers import load

    kind = load(row.kind)
    try:
        return kind.build(kind.profile, row.key, row.settings)
    except Invalid as failure:
        wrong = "; ".join(f"{path} {reason}" for path, reason in failure.fields)
        raise BadSetting(f"{source}: pool {row.id!r}: {wrong or failure.detail}") from None


class _Process:
    """The one Router of this process, and what it is made from."""

    def __init__(self) -> None:
        self.settings: Settings | None = None
        self.factory: Callable[[Settings], Router] = build
        self.router: Router | None = None
        self.outward: Outward | None = None
        self.lock = threading.RLock()


_process = _Process()


def use(
    factory: Callable[[Settings], Router],
    settings: Settings | None = None,
    outward: Outward | None = None,
) -> None:
    """From now on make this process's Router this way, out of these settings."""
    with _process.lock:
        _process.factory, _process.settings, _process.router = factory, settings, None
        _process.outward = outward


def settings() -> Settings:
    """This process's settings; raises BadSetting."""
    with _process.lock:
        _process.settings = _process.settings or Settings.current()
        return _process.settings


def streaming() -> bool:
    """Do integrations stream? Also where the settings are wrong: then it is the usual answer."""
    try:
        return settings().streaming
    except BadSetting:
        return True


def router() -> Router:
    """This process's Router, made at the first call."""
    if (found := _process.router) is not None:
        return found
    with _process.lock:
        if _process.router is None:
            _process.router = _process.factory(settings())
        return _process.router


def outward() -> Outward:
    """This process's ways to other systems, made at the first call."""
    with _process.lock:
        _process.outward = _process.outward or OUTWARD[settings().backend](settings())
        return _process.outward
