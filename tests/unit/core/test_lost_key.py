"""The vault's key is gone: nobody can read a request's secrets, and everything else goes on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from sandbox_router.model.failure import Internal
from sandbox_router.model.sandbox import State
from sandbox_router.model.secret import Secret
from sandbox_router.ports import Instance, Order
from tests.fakes.vault import FakeVault
from tests.sim.world import TENANT
from tests.unit.core.scenes import Scene, Vendor

ENV: dict[str, Any] = {"env_names": ("TOKEN",)}


@pytest.fixture
def scene() -> Scene:
    return Scene()


def _lost(*_: object) -> Mapping[str, Secret]:
    raise Internal


def loses_its_key(monkeypatch: pytest.MonkeyPatch, *operations: str) -> None:
    for name in operations:
        monkeypatch.setattr(FakeVault, name, _lost)


def test_what_was_handed_over_can_still_be_destroyed(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    reply = scene.ask(wait=0, **ENV)
    loses_its_key(monkeypatch, "unseal")
    assert scene.router.destroy(TENANT, reply.record_id or "").state is State.DESTROYED


def test_what_was_handed_over_fails_at_its_deadline_and_leaves_nothing(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.ask(wait=0, **ENV)
    loses_its_key(monkeypatch, "unseal")
    box = scene.until(State.FAILED, seconds=610)
    assert (box.sealed, scene.living()) == (None, [])


def test_a_retry_brings_the_secrets_that_cannot_be_opened(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.ask(wait=0, **ENV)
    loses_its_key(monkeypatch, "unseal")
    assert scene.ask(**ENV).status == 201


class Tokens(Vendor):
    """An account whose instances want a token with every call."""

    def create(self, order: Order, *, timeout: float) -> Instance:
        return _with_token(super().create(order, timeout=timeout))

    def get(self, instance_id: str) -> Instance | None:
        found = super().get(instance_id)
        return None if found is None else _with_token(found)


def _with_token(instance: Instance) -> Instance:
    return replace(instance, access={"token": Secret("CANARY-token")})


@pytest.fixture
def tokens(scene: Scene) -> Scene:
    scene.providers["alpha"] = Tokens("alpha", scene.clock)
    return scene


def test_an_instance_whose_token_cannot_be_sealed_is_known_and_serves_when_it_can(
    tokens: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as during:
        loses_its_key(during, "seal")
        assert tokens.ask(wait=5).status == 202
        (attempt,) = tokens.box().attempts
        assert (attempt.instance_id, attempt.ready) == (tokens.living()[0].id, False)
    box = tokens.until(State.RUNNING, seconds=30)
    assert box.attempts[0].access is not None
    assert [name for name, _ in tokens.vendor().calls].count("create") == 1


def test_an_instance_whose_token_can_never_be_sealed_is_destroyed(
    tokens: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    loses_its_key(monkeypatch, "seal")
    tokens.ask(wait=5)
    tokens.until(State.FAILED, seconds=610)
    tokens.on(5)
    assert tokens.living() == []


def test_a_hand_over_that_cannot_be_sealed_keeps_what_was_learnt(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("alpha", "beta"):
        scene.vendor(name).script("create", *["capacity"] * 3)
    loses_its_key(monkeypatch, "seal")
    reply = scene.ask(wait=1, **ENV)
    assert reply.status == 202
    assert [str(a.outcome) for a in scene.box().attempts] == ["refused", "refused"]
    assert scene.box().due_at == scene.box().create_until
