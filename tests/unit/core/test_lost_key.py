"""The vault's key is gone: nobody can read a request's secrets, and everything else goes on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from sandbox_router.model.failure import Internal
from sandbox_router.model.sandbox import State
from sandbox_router.model.secret import Secret
from tests.fakes.vault import FakeVault
from tests.sim.world import TENANT
from tests.unit.core.scenes import Scene

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
    assert scene.router.destroy(TENANT, reply.sandbox_id or "").state is State.DESTROYED


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
