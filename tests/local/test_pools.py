"""A wrong pools file is refused in the operator's words, before anything is started."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from functions.edge.settings import BadSetting
from infra.local import pools
from infra.local.state import State

REAL = {"id": "main", "kind": "e2b"}
LOCAL = {"id": "alpha", "kind": "e2b", "local_account": "alpha"}
IMAGES = {"default": {"e2b": {"2x4": "base-2x4"}}}
SECRET = "e2b_" + "0" * 40


@pytest.fixture
def state(tmp_path: Path) -> State:
    state = State(tmp_path)
    pools.prepare(state)
    return state


def refused(state: State, text: str, **env: str) -> str:
    """What is said; never of a file the operator did not write, and never a key."""
    state.pools.write_text(text)
    with pytest.raises(BadSetting) as caught:
        pools.check(state, env)
    said = str(caught.value)
    assert said.startswith(f"{state.pools}: "), said
    assert "CANARY" not in said
    assert not [path for path in state.path.iterdir() if "trial" in path.name]
    return said


def file(*rows: Any, **more: Any) -> str:
    return json.dumps({"pools": rows, "images": IMAGES, **more})


def test_the_first_file_is_right(state: State) -> None:
    pools.check(state, {})
    assert not state.pools_resolved.exists()


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({**REAL}, "pools[0] needs exactly one of local_account, key, key_env, key_file"),
        ({**LOCAL, "key": "CANARY"}, "pools[0] needs exactly one of"),
        ({**LOCAL, "key_env": "X"}, "it has local_account and key_env"),
        ({**REAL, "local_acount": "alpha"}, "local_acount is not known; did you mean 'local_acc"),
        ({**LOCAL, "colour": "red"}, "pools[0].colour is not known"),
        ({**LOCAL, "local_account": "delta"}, "of pool 'alpha': 'delta' is no account of the host"),
        ({**LOCAL, "local_account": ["a"]}, "is no account of the host; it has: alpha, beta,"),
        ({**LOCAL, "local_account": "gamma"}, "'gamma' is of kind 'opensandbox'"),
        ({**LOCAL, "kind": "docker"}, "the account 'alpha' is of kind 'e2b'"),
        ({**REAL, "kind": "docker", "key": "CANARY"}, "'docker' is not known; known are: e2b"),
        ({**REAL, "key_env": "E2B_KEY"}, "key_env: the variable 'E2B_KEY' is not set"),
        ({**REAL, "key_env": "EMPTY"}, "key_env: the variable 'EMPTY' is not set"),
        ({**REAL, "key_env": "TWO_LINES"}, "key_env: a key is one line of printable ASCII"),
        ({**REAL, "key": "CANARY\u0007"}, "pools[0].key: a key is one line of printable ASCII"),
        ({**REAL, "key_file": "lines.key"}, "key_file: a key is one line of printable ASCII"),
        ({**REAL, "key_file": "no.key"}, "no.key cannot be read (No such file"),
        ({**REAL, "id": "A", "key": SECRET}, "pools[0].id must be lower-case"),
        ({**REAL, "key": SECRET, "api_url": "ftp://x"}, "pool 'main'"),
    ],
)
def test_a_wrong_pool_is_named_with_what_is_wrong(
    state: State, row: dict[str, Any], said: str
) -> None:
    (state.path / "lines.key").write_text("CANARY\nCANARY")
    assert said in refused(state, file(row), EMPTY=" ", TWO_LINES="CANARY\r\nX: y")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "line 1, column 2 is no JSON"),
        ("[]", "must be an object"),
        ("{}", "pools must be a list of objects"),
        ('{"pools": [1]}', "pools must be a list of objects"),
        ('{"pools": []}', "pools must name at least one pool"),
        ('{"pools": [], "pools": []}', "'pools' is there twice"),
        ('{"pools": [{"id": "a", "id": "b"}]}', "'id' is there twice"),
        (file(LOCAL, event_sources={"x": {}}), "event_sources.x.scopes"),
        (file(LOCAL, LOCAL), "pools[1].id 'alpha' is there twice"),
    ],
)
def test_a_wrong_file_is_refused_with_its_place(state: State, text: str, said: str) -> None:
    assert said in refused(state, text)


def test_a_right_key_may_come_from_anywhere(state: State) -> None:
    (state.path / "e2b.key").write_text(f"{SECRET}\n")
    for row in ({"key": SECRET}, {"key_env": "E2B_KEY"}, {"key_file": "e2b.key"}):
        state.pools.write_text(file({**REAL, **row}))
        pools.check(state, {"E2B_KEY": SECRET})
