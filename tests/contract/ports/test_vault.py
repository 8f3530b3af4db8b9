"""The Vault port: values go in and come out for their own sandbox only, and never show."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest

from adapters.embedded.vault import FileVault
from sandbox_router.model.failure import Internal
from sandbox_router.model.secret import Secret
from sandbox_router.ports import Vault

ID, OTHER = "sbx-" + "a" * 26, "sbx-" + "b" * 26
SECRETS = {"TOKEN": Secret("canary-4711"), "": Secret(""), "emoji 😀": Secret("\0é\ud800\n")}


def test_what_was_sealed_comes_back(vault: Vault) -> None:
    assert vault.unseal(ID, vault.seal(ID, SECRETS)) == SECRETS
    assert vault.unseal(ID, vault.seal(ID, {})) == {}


def test_a_large_value_comes_back(vault: Vault) -> None:
    large = {"k": Secret("x😀" * 50_000)}
    assert vault.unseal(ID, vault.seal(ID, large)) == large


def test_no_name_and_no_value_shows(vault: Vault) -> None:
    sealed = vault.seal(ID, SECRETS)
    assert b"canary" not in sealed
    assert b"TOKEN" not in sealed


def test_another_sandbox_cannot_unseal_it(vault: Vault) -> None:
    with pytest.raises(Internal):
        vault.unseal(OTHER, vault.seal(ID, SECRETS))


def test_a_changed_byte_is_noticed_wherever_it_is(vault: Vault) -> None:
    sealed = vault.seal(ID, SECRETS)
    for at in range(len(sealed)):
        changed = bytearray(sealed)
        changed[at] ^= 1
        with pytest.raises(Internal):
            vault.unseal(ID, bytes(changed))


@pytest.mark.parametrize("cut", [0, 1, 5, 30, -1])
def test_a_cut_or_foreign_value_is_refused(vault: Vault, cut: int) -> None:
    with pytest.raises(Internal) as caught:
        vault.unseal(ID, vault.seal(ID, SECRETS)[:cut])
    assert "canary" not in str(caught.value)
    with pytest.raises(Internal):
        vault.unseal(ID, b"never sealed by anyone here" * 4)


def test_the_same_values_never_look_the_same_twice(tmp_path: Path) -> None:
    vault = FileVault(tmp_path / "key")
    assert vault.seal(ID, SECRETS) != vault.seal(ID, SECRETS)


def test_the_key_file_is_made_once_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "key"
    sealed = FileVault(path).seal(ID, SECRETS)
    assert path.stat().st_mode & 0o777 == 0o600
    assert len(path.read_bytes()) == 32
    assert FileVault(path).unseal(ID, sealed) == SECRETS
    assert [file.name for file in tmp_path.iterdir()] == ["key"]


def test_another_key_opens_nothing(tmp_path: Path) -> None:
    sealed = FileVault(tmp_path / "one").seal(ID, SECRETS)
    with pytest.raises(Internal):
        FileVault(tmp_path / "two").unseal(ID, sealed)


def test_a_key_file_others_can_read_is_refused(tmp_path: Path) -> None:
    FileVault(tmp_path / "key")
    (tmp_path / "key").chmod(0o640)
    with pytest.raises(Internal):
        FileVault(tmp_path / "key")


@pytest.mark.parametrize("size", [0, 31, 33])
def test_a_key_of_another_size_is_refused_and_not_replaced(tmp_path: Path, size: int) -> None:
    path = tmp_path / "key"
    path.touch(0o600)
    path.write_bytes(b"k" * size)
    with pytest.raises(Internal):
        FileVault(path)
    assert path.read_bytes() == b"k" * size


def _seal_at_once(path: Path, barrier: object, results: object) -> None:
    barrier.wait()  # type: ignore[attr-defined]
    results.put(FileVault(path).seal(ID, SECRETS))  # type: ignore[attr-defined]


def test_processes_that_race_for_the_key_agree_on_one(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(4), context.Queue()
    path = tmp_path / "key"
    racers = [
        context.Process(target=_seal_at_once, args=(path, barrier, results)) for _ in range(4)
    ]
    for racer in racers:
        racer.start()
    sealed = [results.get(timeout=30) for _ in racers]
    for racer in racers:
        racer.join()
    vault = FileVault(path)
    assert all(vault.unseal(ID, each) == SECRETS for each in sealed)
