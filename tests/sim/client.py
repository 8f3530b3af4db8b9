"""What clients do in a world, and the history of what they saw of it."""

from __future__ import annotations

import contextlib
import itertools
import json
from collections import Counter
from collections.abc import Callable
from typing import Any

from sandbox_router.lifecycle.create import CreateRequest
from sandbox_router.lifecycle.once import Reply
from sandbox_router.lifecycle.snapshots import SnapshotRequest
from sandbox_router.model.failure import Failure, KeyReused, StoreBusy
from sandbox_router.model.sandbox import Sandbox
from sandbox_router.model.secret import Secret
from sandbox_router.model.spec import Cargo, Spec
from sandbox_router.router import Router
from tests.fakes.clock import FakeClock
from tests.fakes.provider import FakeProvider
from tests.sim import history
from tests.sim.history import Event
from tests.sim.process import SHAPE
from tests.sim.race import Race

TENANT = "acme"


class Clients:
    """The clients of a world. `guarded` runs a call in a process that may die in it."""

    clock: FakeClock
    memory: Any
    router: Router
    providers: dict[str, FakeProvider]
    sometimes: Counter[str]
    race: Race | None
    rival: tuple[int, Callable[[], None]] | None
    rivals: int
    guarded: Callable[[Callable[[], Any]], Any]
    _within: bool

    def __init__(self) -> None:
        self.answers: list[tuple[str, Reply]] = []
        self.history: list[Event] = []
        self._calls = itertools.count(1)

    def create(
        self,
        key: str | None = "k1",
        *,
        ttl: int = 120,
        wait: float = 20.0,
        env: bool = False,
        tenant: str = TENANT,
        idle: int | None = None,
        of: str | None = None,
        router: Router | None = None,
    ) -> Reply | None:
        """A create, of a snapshot if `of` names one; None when the process died in it."""
        spec = Spec(
            SHAPE,
            ttl_seconds=ttl,
            env_names=("TOKEN",) if env else (),
            idle_seconds=idle,
            snapshot_id=of,
            sized=of is None,
        )
        cargo = Cargo({"TOKEN": Secret("CANARY-1")}) if env else Cargo()
        body = " ".join(str(part) for part in (ttl, idle, of) if part is not None)
        request = CreateRequest(spec, body.encode(), "req-1", cargo, key)
        process = router or self.router
        return self._begun(
            "create", tenant, key, body, lambda: process.create(tenant, request, wait_seconds=wait)
        )

    def take_snapshot(
        self,
        box: Sandbox,
        key: str | None = "s1",
        *,
        ttl: int = 120,
        wait: float = 20.0,
        router: Router | None = None,
    ) -> Reply | None:
        """A snapshot of a sandbox; None when the process died in it."""
        body = f"{box.id} {ttl}"
        request = SnapshotRequest("req-2", body.encode(), ttl_seconds=ttl, key=key)
        process = router or self.router
        return self._begun(
            "snapshot",
            box.tenant,
            key,
            body,
            lambda: process.take_snapshot(box.tenant, box.id, request, wait_seconds=wait),
        )

    def _begun(
        self, op: str, tenant: str, key: str | None, body: str, send: Callable[[], Reply]
    ) -> Reply | None:
        call, before = next(self._calls), self._seen(op)
        self._note("invoke", op, call, tenant=tenant, key=key, body=body)
        try:
            reply = self.guarded(send)
        except Failure as failure:
            self.sometimes["the store was busy"] += isinstance(failure, StoreBusy)
            if isinstance(failure, KeyReused):
                self.sometimes["a key was reused with another body"] += 1
                self._untouched(op, before, "I4: a refused body reached somebody")
            reply = Reply(failure.status, failure.code)
        if not isinstance(reply, Reply):
            self._note("info", op, call)
            return None
        self.answers.append((key or "", reply))
        self._answered(op, call, reply)
        if reply.replayed and reply.status < 300:
            which = "settled answer" if reply.status == 201 else "starting sandbox"
            self.sometimes[f"a {which} was replayed"] += 1
        settled = [e for e in self.history if e.answer == reply.body and e.status == 201]
        if reply.status == 201 and len(settled) > 1 and not self._within:
            self._untouched(op, before, "I5: a replay did something")
        return reply

    def _answered(self, op: str, call: int, reply: Reply) -> None:
        good = reply.status < 300
        told = json.loads(reply.body) if good else {}
        self._note(
            "ok" if good else "fail",
            op,
            call,
            status=reply.status,
            sandbox=reply.record_id,
            instance=told.get("instance_id"),
            state=told.get("state") or ("reused" if reply.body == KeyReused.code else None),
            answer=reply.body if reply.status == 201 else "",
        )

    def destroy(self, record_id: str, tenant: str = TENANT, router: Router | None = None) -> None:
        """A destroy, of a sandbox or a snapshot; failures are the client's to retry."""
        process, call = router or self.router, next(self._calls)
        end = process.destroy_snapshot if record_id.startswith("snap-") else process.destroy
        self._note("invoke", "destroy", call, tenant=tenant, sandbox=record_id)
        kind: history.Kind = "info"
        with contextlib.suppress(Failure):
            done = self.guarded(lambda: end(tenant, record_id))
            kind = "info" if done is None else "ok"
        self._note(kind, "destroy", call, sandbox=record_id)

    def asked(self, call: Callable[[], Any]) -> None:
        """Another call, whose failure is the client's to retry."""
        try:
            self.guarded(call)
        except StoreBusy:
            self.sometimes["the store was busy"] += 1
        except Failure:
            pass

    def _seen(self, op: str) -> tuple[int, object]:
        """What a request that does nothing leaves alone; asking for a snapshot is a use of its
        sandbox, which may be written down.
        """
        return self._vendor_calls(), self._version() if op == "create" else None

    def _untouched(self, op: str, before: tuple[int, object], fault: str) -> None:
        if self.race is None and self.rival is None and not self.rivals:
            assert before == self._seen(op), fault

    def _note(self, kind: history.Kind, op: str, call: int = 0, **more: Any) -> None:
        self.history.append(Event(kind, op, self.clock.now() / 1000, call, **more))

    def _vendor_calls(self) -> int:
        return sum(len(provider.calls) for provider in self.providers.values())

    def _version(self) -> object:
        return getattr(self.memory, "version", None)
