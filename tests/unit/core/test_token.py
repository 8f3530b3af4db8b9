"""Tokens say what they said, to their owner and for their purpose only."""

from __future__ import annotations

import base64
import re

import pytest

from sandbox_router.model.secret import Secret
from sandbox_router.model.token import Foreign, Tokens

TOKENS = Tokens("upload", Secret("pepper"))
SAID = [[], "", 0, None, {"a": [1, None, "ü/日本\n"]}, ["x" * 4096, 2**53]]


@pytest.mark.parametrize("said", SAID, ids=range(len(SAID)))
def test_what_was_said_comes_back(said: object) -> None:
    token = TOKENS.made("acme/sbx-a", said)
    assert re.fullmatch(r"[A-Za-z0-9_-]+", token)
    assert TOKENS.opened("acme/sbx-a", token) == said


@pytest.mark.parametrize("owner", ["", "acme", "acme/sbx-b", "acme/sbx-a ", 'acme/sbx-a",["'])
def test_another_owner_opens_nothing(owner: str) -> None:
    with pytest.raises(Foreign):
        TOKENS.opened(owner, TOKENS.made("acme/sbx-a", [1]))


def test_another_purpose_and_another_deployment_open_nothing() -> None:
    for other in (Tokens("cursor", Secret("pepper")), Tokens("upload", Secret("other"))):
        with pytest.raises(Foreign):
            other.opened("o", TOKENS.made("o", [1]))


def test_a_changed_bit_is_noticed_wherever_it_is() -> None:
    token = TOKENS.made("o", ["/tmp/a"])
    data = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    for at in range(len(data)):
        changed = bytearray(data)
        changed[at] ^= 1
        with pytest.raises(Foreign):
            TOKENS.opened("o", base64.urlsafe_b64encode(changed).decode().rstrip("="))


@pytest.mark.parametrize("cut", [0, 1, 2, 21, 22, 23, -1])
def test_a_cut_one_is_none(cut: int) -> None:
    with pytest.raises(Foreign):
        TOKENS.opened("o", TOKENS.made("o", ["/tmp/a"])[:cut])


@pytest.mark.parametrize("added", ["=", "==", "!", "\n", " ", "é", "A", "\0"])
def test_one_token_has_one_text(added: str) -> None:
    token = TOKENS.made("o", ["/tmp/ab"])
    for text in (token + added, added + token, token[:5] + added + token[5:]):
        with pytest.raises(Foreign):
            TOKENS.opened("o", text)


def test_the_pepper_shows_nowhere() -> None:
    assert "CANARY" not in repr(Tokens("upload", Secret("CANARY")))
