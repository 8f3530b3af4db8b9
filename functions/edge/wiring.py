"""The composition root: settings in, one Router per process out. Only here adapters are built."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Protocol, TypeVar

from sandbox_router.model.failure import Invalid, NotFound
from sandbox_router.model.pool import Pool
from sandbox_router.model.secret import Secret
from sandbox_router.ports import Bus, Clock, DeadLetters, Ids, Provider, Queue, Table, Vault
from sandbox_router.router import Router

from .config import EventSource, PoolConfig, read, read_sources
from .settings import BadSetting, Settings

T = TypeVar("T")
PEPPER_BYTES = 16


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
def waiting() -> Iterator[Waited]:
    """Count what this context waits for providers."""
    from adapters.providers import http

    with http.waiting() as waited:
        yield waited


@dataclass(frozen=True)
class Backend:
    """Everything of a deployment that is not policy."""

    table: Table
    queue: Queue
    vault: Vault
    clock: Clock
    ids: Ids


def embedded(settings: Settings) -> Backend:
    """The backend of one machine; its state folder must exist."""
    from adapters.embedded.queue import SqliteQueue
    from adapters.embedded.table import SqliteTable
    from adapters.embedded.vault import FileVault
    from adapters.system import SystemClock, SystemIds

    clock = SystemClock()
    return Backend(
        table=SqliteTable(settings.table_file),
        queue=SqliteQueue(settings.queue_file, clock),
        vault=FileVault(settings.vault_file),
        clock=clock,
        ids=SystemIds(),
    )


BACKENDS: Mapping[str, Callable[[Settings], Backend]] = {"embedded": embedded}


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


OUTWARD: Mapping[str, Callable[[Settings], Outward]] = {"embedded": journals}


def build(settings: Settings, wrap: Wrap = as_it_is, backend: Backend | None = None) -> Router:
    """A Router over the settings' backend, or over one that is there already."""
    behind = backend or BACKENDS[settings.backend](settings)
    pepper = _pepper(settings)
    return Router(
        table=wrap(behind.table),
        queue=wrap(behind.queue),
        pools=ConfiguredPools(settings, wrap),
        vault=behind.vault,
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
    if len(text) < PEPPER_BYTES:
        raise BadSetting(f"{path}: a pepper has at least {PEPPER_BYTES} characters")
    return Secret(text)


def _named_after(pepper: Secret) -> str:
    """A deployment nobody named: the same as long as its secrets are."""
    digest = hashlib.sha256(b"deployment\0" + pepper.reveal().encode()).hexdigest()
    return f"local-{digest[:32]}"


class ConfiguredPools:
    """`ports.Pools` out of the operator's file; a provider is opened when it is first asked for."""

    def __init__(self, settings: Settings, wrap: Wrap = as_it_is) -> None:
        from adapters.providers import KINDS, profile

        rows = read(settings.pools_file, frozenset(KINDS), settings.variables)
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
                where = f"{settings.pools_file}: images.{min(row.any_size)}"
                raise BadSetting(f"{where} needs a size for kind {row.kind!r}")
            _open(row, settings)

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


def _open(row: PoolConfig, settings: Settings | None = None) -> Provider:
    from adapters.providers import load

    kind = load(row.kind)
    try:
        return kind.build(kind.profile, row.key, row.settings)
    except Invalid as failure:
        wrong = "; ".join(f"{path} {reason}" for path, reason in failure.fields)
        where = settings.pools_file if settings else "the pools' file"
        raise BadSetting(f"{where}: pool {row.id!r}: {wrong or failure.detail}") from None


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
