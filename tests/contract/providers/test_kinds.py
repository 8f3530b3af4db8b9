"""The table of kinds: what is in the folder is in the table, and every profile can be read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from adapters import providers
from sandbox_router.model.failure import Invalid
from sandbox_router.model.secret import Secret
from sandbox_router.ports import Provider

FOLDER = Path(providers.__file__).parent
NEEDED = {"opensandbox": {"api_url": "https://sandboxes.corp.internal"}}
"""Settings a kind cannot do without."""


def test_the_folders_are_the_kinds() -> None:
    folders = {path.parent.name for path in FOLDER.glob("*/__init__.py")}
    assert folders == set(providers.KINDS)
    for kind, module in providers.KINDS.items():
        assert module == f"adapters.providers.{kind}.provider"


@pytest.mark.parametrize("kind", providers.KINDS)
def test_a_profile_is_of_its_kind_and_links_its_claims(kind: str) -> None:
    profile = providers.profile(kind)
    assert profile.kind == kind
    claims = {name for name, details in profile.abilities.items() if details is not None}
    claims |= {"naming", "lifetime", "labels", "isolation", "hosts", "price"}
    assert claims - set(profile.links) == set()
    assert all(link.startswith("https://") for link in profile.links.values())


@pytest.mark.parametrize("kind", providers.KINDS)
def test_a_profile_says_what_a_snapshot_is_and_links_each_word(kind: str) -> None:
    profile = providers.profile(kind)
    if not profile.can("snapshots"):
        return
    details = profile.abilities["snapshots"] or {}
    assert set(details) == {"contents", "interrupts", "idempotent"}
    assert details["contents"]
    assert set(details["contents"]) <= {"memory", "disk"}
    assert details["interrupts"] in ("pause", "stop", None)
    assert details["idempotent"] in (True, False)
    assert {f"snapshots.{name}" for name in details} <= set(profile.links)


@pytest.mark.parametrize("kind", providers.KINDS)
def test_reading_a_profile_imports_no_code_of_the_kind(kind: str) -> None:
    code = (
        "import sys; from adapters import providers;"
        f"providers.profile({kind!r});"
        "sys.exit(any(n == 'httpx' or n.startswith('adapters.providers.') for n in sys.modules))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("kind", providers.KINDS)
def test_a_kind_builds_an_account_from_a_pools_settings(kind: str) -> None:
    loaded, needed = providers.load(kind), NEEDED.get(kind, {})
    account: Provider = loaded.build(loaded.profile, Secret("key"), needed)
    assert callable(account.verify)
    with pytest.raises(Invalid):
        loaded.build(loaded.profile, Secret("key"), {**needed, "no_such_setting": "1"})


def test_an_unknown_kind_is_an_error() -> None:
    with pytest.raises(KeyError):
        providers.load("nobody")


@pytest.mark.parametrize(
    ("url", "fine"),
    [
        ("https://api.corp.internal/e2b", True),
        ("http://127.0.0.1:8080/e2b", True),
        ("http://[::1]:8080", True),
        ("http://api.corp.internal", False),
        ("https://user:pass@api.corp.internal", False),
        ("https://api.corp.internal?key=1", False),
        ("api.corp.internal", False),
        ("", False),
        ("https://", False),
        ("https://[::1", False),
    ],
)
def test_an_address_in_a_pools_settings_is_checked_when_it_is_opened(url: str, fine: bool) -> None:
    loaded = providers.load("e2b")
    for name in ("api_url", "sandbox_url"):
        if fine:
            loaded.build(loaded.profile, Secret("key"), {name: url})
        else:
            with pytest.raises(Invalid):
                loaded.build(loaded.profile, Secret("key"), {name: url})
