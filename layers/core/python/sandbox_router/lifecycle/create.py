"""Create: the record of a new sandbox, and why none can be made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from ..model.failure import Failure, NoPool, Unsupported
from ..model.sandbox import Sandbox
from ..model.secret import Secret
from ..model.spec import Cargo, Spec
from ..ports import Ids
from ..routing.route import Route
from .advance import Lifecycle
from .once import Asked, Once, Reply

CREATE_SECONDS = 600
"""A create that has not succeeded after this, or after its ttl, has failed."""
Routed = Callable[[], tuple[Spec, Route]]
TRANSIENT = frozenset({"pool_broken", "pool_draining"})


@dataclass(frozen=True)
class CreateRequest:
    """A create as it came in. fingerprint: the canonical body; key: the Idempotency-Key."""

    spec: Spec
    fingerprint: bytes = field(repr=False)
    request_id: str
    cargo: Cargo = field(default_factory=Cargo, repr=False)
    key: str | None = None


class Creates:
    """Starts sandboxes, once per key."""

    def __init__(self, lifecycle: Lifecycle[Sandbox], ids: Ids, pepper: Secret) -> None:
        self._lifecycle, self._ids = lifecycle, ids
        self._once = Once(lifecycle, ids, pepper)

    def create(
        self,
        tenant: str,
        request: CreateRequest,
        routed: Routed,
        wait: float,
    ) -> Reply:
        """201, 202, or the first answer again, whatever could be routed now; raises KeyReused,
        Unsupported, NoPool, StoreBusy, and what `routed` raises.
        """
        asked = Asked(
            tenant, request.request_id, request.fingerprint, request.key, wait, request.cargo
        )
        try:
            spec, route = routed()
            if not route.candidates:
                raise _unroutable(route)
        except Failure:
            if (reply := self._once.again(asked)) is None:
                raise
            return reply
        return self._once.begin(asked, lambda h: self._record(asked, spec, route, h))

    def _record(self, asked: Asked, spec: Spec, route: Route, request_hash: str) -> Sandbox:
        """The record as it begins; whoever takes it over needs the secrets, sealed."""
        now = self._lifecycle.clock.now()
        box = Sandbox(
            id=self._ids.sandbox(),
            tenant=asked.tenant,
            spec=spec,
            created_at=now,
            expires_at=now + spec.ttl_seconds * 1000,
            create_until=now + min(spec.ttl_seconds, CREATE_SECONDS) * 1000,
            route=route.candidates,
            request_id=asked.request_id,
            key_hash=asked.key_hash,
            request_hash=request_hash,
            labels=spec.labels,
            idle_seconds=spec.idle_seconds,
            due_at=now,
        )
        if asked.wait or not asked.cargo.env:
            return box
        return replace(box, sealed=self._lifecycle.vault.seal(box.id, asked.cargo.env))


def _unroutable(route: Route) -> Unsupported | NoPool:
    """Which option which pool cannot serve; 503 when time alone would mend one of them."""
    waiting = any(set(r.reasons) <= TRANSIENT for r in route.refused)
    fields = tuple((f"pools.{r.pool_id}", ", ".join(r.reasons)) for r in route.refused)
    if waiting or not route.refused:
        return NoPool(retry_after=30, fields=fields)
    options = sorted({reason.split(":")[0] for r in route.refused for reason in r.reasons})
    return Unsupported(f"no pool can serve: {', '.join(options)}", fields=fields)
