"""The provider kinds, and the one place that knows where each lives."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from sandbox_router.model.capability import Profile, read
from sandbox_router.model.secret import Secret
from sandbox_router.ports import Provider

KINDS: dict[str, str] = {
    "e2b": "adapters.providers.e2b.provider",
    "opensandbox": "adapters.providers.opensandbox.provider",
}
"""Kind -> module with `build`; its folder holds the kind's profile.json."""

Build = Callable[[Profile, Secret, Mapping[str, str]], Provider]
"""(profile, account key, the pool's settings) -> provider; raises Invalid on a wrong setting."""


@dataclass(frozen=True)
class ProviderKind:
    """What a kind declares, and how one account of it is opened."""

    profile: Profile
    build: Build


def profile(kind: str) -> Profile:
    """The profile of a kind, without importing its code; raises KeyError on an unknown kind."""
    folder = KINDS[kind].split(".")[-2]
    text = (Path(__file__).parent / folder / "profile.json").read_text(encoding="utf-8")
    return read(json.loads(text))


def load(kind: str) -> ProviderKind:
    """A kind with its code, imported now; raises KeyError on an unknown kind."""
    return ProviderKind(profile(kind), import_module(KINDS[kind]).build)
