"""A world for tests of the life cycle: a client's words, and what happens between two calls."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from sandbox_router.lifecycle.create import CreateRequest
from sandbox_router.lifecycle.once import Reply
from sandbox_router.model.failure import ProviderFailure
from sandbox_router.model.sandbox import Sandbox, State
from sandbox_router.model.secret import Secret
from sandbox_router.model.spec import Cargo, Preferences, Spec
from sandbox_router.ports import Instance, Order
from tests.fakes.provider import FakeProvider
from tests.sim.world import SHAPE, TENANT, World


@dataclass
class Vendor(FakeProvider):
    """A fake account that can fail in any way, and notes what it was told.

    `answers`: what the next calls of an operation raise instead of doing anything. `stubborn`: how
    many destroys are accepted and not done.
    """

    answers: dict[str, list[ProviderFailure | None]] = field(default_factory=dict)
    lifetimes: list[tuple[str, int]] = field(default_factory=list)
    at: list[tuple[str, int]] = field(default_factory=list)
    stubborn: int = 0

    def times(self, op: str) -> list[int]:
        """When an operation was called."""
        return [at for name, at in self.at if name == op]

    def resume(self, instance_id: str, lifetime_seconds: int) -> Instance:
        self.lifetimes.append(("resume", lifetime_seconds))
        return super().resume(instance_id, lifetime_seconds)

    def extend(self, instance_id: str, lifetime_seconds: int) -> None:
        self.lifetimes.append(("extend", lifetime_seconds))
        super().extend(instance_id, lifetime_seconds)

    def destroy(self, instance_id: str) -> None:
        if self.stubborn:
            self.stubborn -= 1
            self._called("destroy", instance_id)
            return
        super().destroy(instance_id)

    def _called(self, op: str, subject: str) -> str:
        self.at.append((op, self.clock.now()))
        answers = self.answers.get(op)
        if answers and (answer := answers.pop(0)) is not None:
            self.tick(f"{self.name}.{op}")
            self.calls.append((op, subject))
            raise answer
        return super()._called(op, subject)


class Scene(World):
    """A world with such vendors. `watch` is told of every port call; `between` runs once, at the
    port call that is its moment."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for name, plain in self.providers.items():
            same = {n: getattr(plain, n) for n in ("clock", "idempotent", "list_lag_ms", "tick")}
            self.providers[name] = Vendor(name, on_create=plain.on_create, **same)
        self.watch: Callable[[str], None] = lambda point: None
        self.between: Callable[[], Any] | None = None
        self.moment: Callable[[str], bool] = lambda point: False

    def tick(self, point: str) -> None:
        super().tick(point)
        self.watch(point)
        if self.between is not None and self.moment(point):
            happens, self.between = self.between, None
            happens()

    def vendor(self, name: str = "alpha") -> Vendor:
        """One of the vendors."""
        found = self.providers[name]
        assert isinstance(found, Vendor)
        return found

    def calls(self) -> int:
        """How many provider calls were made so far."""
        return sum(len(provider.calls) for provider in self.providers.values())

    def ask(
        self, key: str | None = "k1", *, tenant: str = TENANT, wait: float = 20.0, **spec: Any
    ) -> Reply:
        """A client's create; failures are raised. The body is the spec."""
        wanted = replace(Spec(SHAPE), **spec)
        env = {name: Secret(f"CANARY-{name}") for name in wanted.env_names}
        request = CreateRequest(wanted, repr(wanted).encode(), "req-1", Cargo(env), key)
        reply = self.router.create(tenant, request, wait_seconds=wait)
        self.answers.append((key or "", reply))
        return reply

    def made(self, **spec: Any) -> Sandbox:
        """A sandbox that runs."""
        reply = self.ask(None, **spec)
        assert reply.status == 201
        assert reply.record_id is not None
        return self.seen(reply.record_id)

    def seen(self, sandbox_id: str) -> Sandbox:
        """Its record now."""
        return self.router.get(TENANT, sandbox_id)

    def box(self) -> Sandbox:
        """The only record there is."""
        (only,) = self.boxes()
        return only

    def on(self, seconds: float) -> None:
        """Let the world go on for this long."""
        self.run_until(self.clock.now() + round(seconds * 1000))

    def until(self, state: State, seconds: float = 120) -> Sandbox:
        """Let the world go on until the only sandbox is in this state."""
        end = self.clock.now() + round(seconds * 1000)
        while self.box().state is not state:
            assert self.clock.now() < end, f"still {self.box().state}"
            self.step()
            self.check()
        return self.box()


NO_FALLBACK = Preferences(allow_fallbacks=False)


def body(reply: Reply) -> dict[str, Any]:
    """A reply's document."""
    found: dict[str, Any] = json.loads(reply.body)
    return found


def raising(failure: ProviderFailure) -> Callable[[Order], None]:
    """An `on_create` that refuses every order."""

    def refuse(order: Order) -> None:
        raise failure

    return refuse
