"""The facade: use cases in, results out. Every call names the tenant it is for."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from .lifecycle.advance import WAKE_MS, Lifecycle
from .lifecycle.create import CreateRequest, Creates, Reply
from .lifecycle.health import PoolHealth
from .lifecycle.wishes import Wishes
from .model.failure import Gone, Invalid, NotFound
from .model.pool import Pool
from .model.principal import Principal
from .model.sandbox import Sandbox, State
from .model.secret import Secret
from .model.spec import Spec
from .ports import (
    Clock,
    Command,
    Endpoint,
    Entry,
    Exit,
    Ids,
    Output,
    Pools,
    Queue,
    Table,
    Vault,
)
from .routing.order import route
from .routing.route import Route
from .session.live import Session
from .store import SHARDS, Store

T = TypeVar("T")
CURSOR_MS = 86_400_000
LIST_PAGES = 5
"""Table pages one list call may read before it answers with a short page."""


@dataclass(frozen=True)
class Filters:
    """Which sandboxes a list shows; `states` None leaves out only the destroyed."""

    states: frozenset[State] | None = None
    labels: tuple[tuple[str, str], ...] = ()
    provider: str | None = None
    created_after: int | None = None

    def take(self, box: Sandbox) -> bool:
        """Does the list show this record? The provider is known only with its attempts."""
        shown = (
            box.state is not State.DESTROYED if self.states is None else box.state in self.states
        )
        return shown and all(box.labels.get(name) == value for name, value in self.labels)

    def serves(self, box: Sandbox) -> bool:
        """Is it at the provider asked for?"""
        at = None if box.server is None else box.server.provider
        return self.provider is None or self.provider == at


class Router:
    """One deployment's use cases over its ports."""

    def __init__(  # noqa: PLR0913 - the ports, once
        self,
        *,
        table: Table,
        queue: Queue,
        pools: Pools,
        vault: Vault,
        clock: Clock,
        ids: Ids,
        deployment: str,
        pepper: Secret,
    ) -> None:
        self.clock, self._ids, self._pools, self._queue = clock, ids, pools, queue
        self._pepper = pepper
        self._store = Store(table, clock, ids)
        self._health = PoolHealth(self._store, pools, clock)
        self._lifecycle = Lifecycle(
            self._store, pools, queue, vault, clock, deployment, self._health.mark_broken
        )
        self._creates = Creates(self._lifecycle, ids, pepper)
        self._wishes = Wishes(self._lifecycle, pools, ids)
        self._session = Session(pools, vault)

    def create(self, tenant: str, request: CreateRequest, *, wait_seconds: float) -> Reply:
        """Start a sandbox, once per key."""
        return self._creates.create(tenant, request, self.route(tenant, request.spec), wait_seconds)

    def route(self, tenant: str, spec: Spec) -> Route:
        """Which pools would be asked, in order, and why each other would not."""
        return route(spec, self._pools.all(), self._health.snapshot())

    def get(self, tenant: str, sandbox_id: str, *, refresh: bool = False) -> Sandbox:
        """The record; with `refresh` after a look at the provider."""
        box = self._seen(tenant, sandbox_id)
        return self._wishes.look(box) if refresh else box

    def list(
        self, tenant: str, filters: Filters, *, limit: int, cursor: str | None
    ) -> tuple[list[Sandbox], str | None]:
        """One page, newest first, and the cursor of the next; raises Invalid on a bad cursor."""
        found: list[Sandbox] = []
        at = None if cursor is None else self._opened(tenant, cursor)
        for _ in range(LIST_PAGES):
            room = limit - len(found)
            boxes, at = self._store.of_tenant(tenant, filters.created_after, room, at)
            whole = (self._store.load(box.id) for box in boxes if filters.take(box))
            found.extend(box for box in whole if box and filters.take(box) and filters.serves(box))
            if at is None or len(found) >= limit:
                break
        return found, None if at is None else self._sealed(tenant, at)

    def extend(self, tenant: str, sandbox_id: str, ttl_seconds: int, *, shorten: bool) -> Sandbox:
        """Move the deadline to `ttl_seconds` from now."""
        return self._wishes.extend(self._seen(tenant, sandbox_id), ttl_seconds, shorten=shorten)

    def relabel(self, tenant: str, sandbox_id: str, labels: Mapping[str, str]) -> Sandbox:
        """Replace the labels."""
        return self._wishes.relabel(self._seen(tenant, sandbox_id), labels)

    def destroy(self, tenant: str, sandbox_id: str) -> Sandbox:
        """Wish it gone; the record after what could be done at once."""
        return self._wishes.destroy(self._seen(tenant, sandbox_id))

    def pause(self, tenant: str, sandbox_id: str, keep: str = "memory") -> Sandbox:
        """Pause, keeping memory or disk."""
        return self._wishes.pause(self._seen(tenant, sandbox_id), keep)

    def resume(self, tenant: str, sandbox_id: str) -> Sandbox:
        """Resume with what was kept."""
        return self._wishes.resume(self._seen(tenant, sandbox_id))

    def run(self, tenant: str, sandbox_id: str, command: Command) -> Iterator[Output | Exit]:
        """Run a command, at most once."""
        box = self._seen(tenant, sandbox_id)
        return self._watched(box, self._session.run(box, command))

    def read_file(self, tenant: str, sandbox_id: str, path: str, limit: int) -> bytes:
        """A file's content."""
        return self._live(tenant, sandbox_id, lambda b: self._session.read_file(b, path, limit))

    def write_file(self, tenant: str, sandbox_id: str, path: str, data: bytes) -> None:
        """Create or replace a file."""
        self._live(tenant, sandbox_id, lambda b: self._session.write_file(b, path, data))

    def remove_file(self, tenant: str, sandbox_id: str, path: str) -> None:
        """Remove a file or directory."""
        self._live(tenant, sandbox_id, lambda b: self._session.remove_file(b, path))

    def list_directory(self, tenant: str, sandbox_id: str, path: str) -> tuple[Entry, ...]:
        """A directory's children."""
        return self._live(tenant, sandbox_id, lambda b: self._session.list_directory(b, path))

    def open_port(self, tenant: str, sandbox_id: str, port: int) -> Endpoint:
        """A private preview endpoint."""
        return self._live(tenant, sandbox_id, lambda b: self._session.open_port(b, port))

    def close_port(self, tenant: str, sandbox_id: str, port: int) -> None:
        """End a preview."""
        self._live(tenant, sandbox_id, lambda b: self._session.close_port(b, port))

    def pools(self) -> Sequence[Pool]:
        """Every pool, in the operator's order."""
        return self._pools.all()

    def broken(self) -> frozenset[str]:
        """Pools whose credential the provider rejects."""
        return self._health.snapshot().broken

    def advance(self, sandbox_id: str) -> None:
        """A queue worker's message: look at this sandbox."""
        self._lifecycle.advance(sandbox_id)

    def sweep(self) -> int:
        """Send a message for everything due soon or overdue; how many were sent."""
        now, sent = self.clock.now(), 0
        for shard in range(SHARDS):
            cursor: str | None = None
            while True:
                due, cursor = self._store.due(shard, now + WAKE_MS, cursor)
                for sandbox_id, state, at in due:
                    queue = "create" if state == State.STARTING else "teardown"
                    self._queue.send(queue, sandbox_id, max(at - now, 0) / 1000)
                    sent += 1
                if cursor is None:
                    break
        return sent

    def heal(self) -> None:
        """Ask broken pools to verify."""
        self._health.heal()

    def authenticate(self, key: Secret) -> Principal | None:
        """Whose key this is, if it is one."""
        item = self._store.get((f"KEY#{self._digest(key)}", "A"))
        if item is None:
            return None
        scopes = item["scopes"]
        assert isinstance(scopes, list)
        return Principal(str(item["tenant"]), str(item["key_id"]), frozenset(map(str, scopes)))

    def add_key(self, tenant: str, key: Secret, scopes: Sequence[str]) -> str:
        """Accept an API key from now on; its id. Only a keyed hash is stored."""
        digest = self._digest(key)
        key_id = f"key-{digest[:16]}"
        item = {"tenant": tenant, "key_id": key_id, "scopes": list(scopes)}
        self._store.put((f"KEY#{digest}", "A"), item)
        return key_id

    def _seen(self, tenant: str, sandbox_id: str) -> Sandbox:
        """A tenant's own sandbox; anything else is not there."""
        box = self._store.load(sandbox_id)
        if box is None or box.tenant != tenant:
            raise NotFound
        return box

    def _live(self, tenant: str, sandbox_id: str, call: Callable[[Sandbox], T]) -> T:
        box = self._seen(tenant, sandbox_id)
        try:
            return call(box)
        except Gone:
            self._wishes.look(box)
            raise

    def _watched(self, box: Sandbox, output: Iterator[Output | Exit]) -> Iterator[Output | Exit]:
        try:
            yield from output
        except Gone:
            self._wishes.look(box)
            raise

    def _digest(self, key: Secret) -> str:
        pepper = self._pepper.reveal().encode()
        return hmac.new(pepper, b"key\0" + key.reveal().encode(), hashlib.sha256).hexdigest()

    def _sealed(self, tenant: str, cursor: str) -> str:
        """A list cursor bound to its tenant and day."""
        payload = json.dumps([self.clock.now(), cursor]).encode()
        mac = self._cursor_mac(tenant, payload)
        return base64.urlsafe_b64encode(mac + payload).decode()

    def _opened(self, tenant: str, cursor: str) -> str:
        try:
            data = base64.urlsafe_b64decode(cursor.encode())
            mac, payload = data[:16], data[16:]
            if not hmac.compare_digest(mac, self._cursor_mac(tenant, payload)):
                raise ValueError
            at, inner = json.loads(payload)
        except (ValueError, binascii.Error, UnicodeEncodeError):
            raise Invalid(fields=(("cursor", "is not one of ours"),)) from None
        if at < self.clock.now() - CURSOR_MS:
            raise Invalid(fields=(("cursor", "is older than 24 hours"),))
        return str(inner)

    def _cursor_mac(self, tenant: str, payload: bytes) -> bytes:
        pepper = self._pepper.reveal().encode()
        message = b"cursor\0" + tenant.encode() + b"\0" + payload
        return hmac.new(pepper, message, hashlib.sha256).digest()[:16]
