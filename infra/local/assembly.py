"""Everything the router process is made of, put together: Router, worker loop, gateway."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from itertools import chain
from typing import TypeVar

from adapters.embedded.queue import SqliteQueue
from adapters.embedded.table import SqliteTable
from adapters.embedded.worker import WorkerLoop
from adapters.folder import FolderObjects
from functions.catalog import WORKERS
from functions.catalog import Authorizer as AuthorizerRow
from functions.edge import wiring
from functions.edge.log import log
from functions.edge.settings import Settings
from functions.workers.advance import handler as advance
from functions.workers.reconcile import reconcile
from infra.local import pools
from infra.local.authorizer import Authorizer
from infra.local.crash import Counter, acting
from infra.local.feed import Feed
from infra.local.forgetful import Forgetful
from infra.local.gateway import Gateway
from infra.local.hosting import Host
from infra.local.invocation import undisturbed
from infra.local.messages import deliver
from infra.local.objects import ObjectDoor
from infra.local.options import Options
from infra.local.routes import Routes, of_catalog
from infra.local.state import State, write_private
from sandbox_router.lifecycle.outbox import Outbox
from sandbox_router.model.record import Record
from sandbox_router.model.sandbox import Sandbox
from sandbox_router.model.secret import Secret
from sandbox_router.model.snapshot import Snapshot
from sandbox_router.router import Router
from sandbox_router.store import SHARDS, Store, Unreadable

R = TypeVar("R", bound=Record)
TENANT = "default"
SCOPES = ("sandboxes:read", "sandboxes:write", "admin")
HEAL_SECONDS = 60.0
RECONCILE_SECONDS = 300.0
PURGE_SECONDS = 60.0
PURGE_ITEMS = 500
PUBLISH_SECONDS = 0.5
OBJECT_SECONDS = 86_400.0
"""As long as the bucket's rule, which looks less often."""
FOREVER = 2**53


@dataclass(frozen=True)
class Assembly:
    """A Router over one state folder, its backend, the counter of a crash test, and its sweep."""

    router: Router
    backend: wiring.Backend
    counter: Counter | None
    sweep: Callable[[], object]

    @classmethod
    def of(
        cls, options: Options, state: State, host: Host, env: Mapping[str, str], url: str = ""
    ) -> Assembly:
        """Build it, holding the folder's lock, as this process's Router; raises BadSetting. url:
        where its gateway answers.
        """
        state.secret(state.pepper)
        settings = replace(
            Settings.of(env),
            state=state.path,
            pools=pools.resolved(state, host),
            objects_url=url,
        )
        backend = wiring.BACKENDS[settings.backend](settings)
        release(backend)
        counter = None if options.crash_at is None else Counter(options.crash_at, state.calls)
        wrap = wiring.as_it_is if counter is None else counter.wrap
        queue = backend.queue if "queue" in options.nets else Forgetful(backend.queue)
        router = wiring.build(settings, wrap, replace(backend, queue=queue))
        wiring.use(lambda _: router, settings)
        wiring.outward().sources()  # what is wrong with them shows now, not at the first event
        sweep = (
            partial(queue.keeping, router.sweep) if isinstance(queue, Forgetful) else router.sweep
        )
        return cls(router, backend, counter, sweep)

    def api_key(self, state: State) -> str:
        """The key in the state folder, made or replaced when the store does not know it."""
        key = state.key.read_text().strip() if state.key.exists() else ""
        if not key or self.router.authenticate(Secret(key)) is None:
            key = f"sbr_{secrets.token_urlsafe(32)}"
            self.router.add_key(TENANT, Secret(key), SCOPES)
            write_private(state.key, key.encode())
        return key

    def gateway(self) -> ObjectDoor:
        """The HTTP side, with the real functions and the URLs they sign."""
        row = next(row for row in WORKERS if isinstance(row, AuthorizerRow))
        authorizer = Authorizer(import_module(row.module).handler, row.cache_seconds)
        around = undisturbed if self.counter is None else self.counter.serving
        return ObjectDoor(Gateway(Routes(of_catalog()), authorizer, around), self._objects)

    def worker(self, nets: frozenset[str]) -> WorkerLoop:
        """The background side: queues, sweep, broken pools, expired records, the bus."""
        queue = self.backend.queue
        assert isinstance(queue, SqliteQueue)
        return WorkerLoop(
            queue,
            self._advance,
            self.sweep if "sweep" in nets else _nothing,
            self.backend.clock,
            chores=(
                (RECONCILE_SECONDS, reconcile if "reconcile" in nets else _nothing),
                (HEAL_SECONDS, self.router.heal),
                (PURGE_SECONDS, self._purge),
                (PUBLISH_SECONDS, self.outbox().drain),
            ),
        )

    def outbox(self) -> Outbox:
        """What tells the bus."""
        outward = wiring.outward()
        store = Store(self.backend.table, self.backend.clock, self.backend.ids)
        feed = Feed(wiring.settings().table_file)
        return Outbox(feed, store, outward.bus, outward.letters)

    def _advance(self, record_id: str) -> None:
        with acting():
            deliver(advance, record_id)

    @property
    def _objects(self) -> FolderObjects:
        objects = self.backend.objects
        assert isinstance(objects, FolderObjects)
        return objects

    def _purge(self) -> None:
        self._objects.purge(OBJECT_SECONDS)
        table = self.backend.table
        assert isinstance(table, SqliteTable)
        while table.purge(self.backend.clock.now() // 1000, PURGE_ITEMS):
            pass


def living(backend: wiring.Backend, kind: type[R]) -> Iterator[R]:
    """Every record of a kind, of any tenant, that is not confirmed gone with all its attempts; one
    nobody can read is left out, and hides no other.
    """
    store = Store(backend.table, backend.clock, backend.ids)
    for shard in range(SHARDS):
        cursor: str | None = None
        while True:
            due, cursor = store.due(shard, FOREVER, cursor)
            found = (_readable(store, kind, record_id) for record_id, _, _ in due)
            yield from (box for box in found if box is not None)
            if cursor is None:
                break


def _readable(store: Store, kind: type[R], record_id: str) -> R | None:
    try:
        return store.load(kind, record_id)
    except Unreadable:
        return None


def release(backend: wiring.Backend) -> None:
    """End the claims of the router before: the folder's lock says it is dead, and nobody has to
    wait for its leases to run out.
    """
    store, now = Store(backend.table, backend.clock, backend.ids), backend.clock.now()
    held = chain(living(backend, Sandbox), living(backend, Snapshot))
    for record in held:
        if record.lease_until > now:
            store.free(record)


def _nothing() -> None:
    """A net that is switched off."""


def log_to(state: State) -> None:
    """Logs go to a file: the terminal is for what its reader can use."""
    logging.basicConfig(filename=state.log, level=logging.WARNING, format="%(asctime)s %(message)s")
    file = state.log.open("a", encoding="utf-8")
    for handler in log().handlers:
        if isinstance(handler, logging.StreamHandler):
            handler.setStream(file)
