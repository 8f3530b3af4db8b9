"""The pools file of a local deployment: the first one written, and accounts of the host filled in.

In the operator's file a pool of the provider host says `"local_account": NAME` instead of a key and
addresses: its key is the host's, its address changes with the host's port, and its isolation is
what the host's engine really gives on this machine.
"""

from __future__ import annotations

import json
import re
import secrets
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from functions.edge.config import read_sources
from functions.edge.settings import BadSetting, Settings
from functions.edge.wiring import ConfiguredPools
from infra.local.hosting import Host
from infra.local.state import State, write_private
from sandbox_router.model.spec import Isolation

ACCOUNTS = {"alpha": "e2b", "beta": "e2b", "gamma": "opensandbox"}
"""The accounts of the first files, and their kinds: in the order the pools are asked."""

SIZES = ("1x1", "1x2", "2x4", "4x8", "8x16")
IMAGES: Mapping[str, Any] = {
    "e2b": {size: f"base-{size}" for size in SIZES},
    "opensandbox": "python:3.12",  # any size
}
ADDRESSES = {"e2b": {"api_url": "", "sandbox_url": "/sandbox"}, "opensandbox": {"api_url": ""}}
"""The addresses that a kind's settings name, below the kind's own at the host."""

LOCAL = "local_account"
KEYS = ("key", "key_env", "key_file")
FIELDS = ("id", "kind", "region", "geo", "isolation", "max_ttl_seconds", "draining")
NOWHERE = "http://127.0.0.1:1"
"""Where the host of a check is: nobody calls it."""


def prepare(state: State) -> None:
    """Write the host's accounts and the pools file, unless they are there."""
    if not state.host_config.exists():
        accounts = [
            {"name": name, "dialect": kind, "key": f"{kind[:3]}_{secrets.token_hex(20)}"}
            for name, kind in ACCOUNTS.items()
        ]
        write_private(state.host_config, json.dumps({"accounts": accounts}, indent=2).encode())
    if not source(state).exists():
        write_private(state.pools, json.dumps(_first(), indent=2).encode())


def source(state: State) -> Path:
    """The operator's file: pools.toml where there is one, else pools.json."""
    toml = state.pools.with_suffix(".toml")
    return toml if toml.exists() else state.pools


def _first() -> dict[str, Any]:
    pools = [
        {"id": name, "kind": kind, LOCAL: name, "region": f"local-{name}", "geo": "local"}
        for name, kind in ACCOUNTS.items()
    ]
    images = {name: IMAGES[kind] for name, kind in ACCOUNTS.items()}
    return {"pools": pools, "images": {"default": images}}


def check(state: State, env: Mapping[str, str]) -> None:
    """Refuse the operator's file for anything a start would refuse; raises BadSetting.

    It needs no host, so that nothing is started for a file that is wrong.
    """
    path = source(state)
    data = _load(path)
    _check_keys(path, data["pools"], env)
    _fill(state, data["pools"], NOWHERE, Isolation.CONTAINER)
    trial = state.path / f".{path.stem}.trial.json"  # beside it: `key_file` is said from there
    write_private(trial, json.dumps(data).encode())
    try:
        ConfiguredPools(replace(Settings.of(env), state=state.path, pools=trial))
        read_sources(trial)
    except BadSetting as error:
        raise BadSetting(str(error).replace(str(trial), str(path))) from None
    finally:
        trial.unlink(missing_ok=True)


def resolved(state: State, host: Host) -> Path:
    """The file to build from: the operator's, with local accounts filled in; raises BadSetting."""
    data = _load(source(state))
    _fill(state, data["pools"], host.url, host.isolation)
    write_private(state.pools_resolved, json.dumps(data).encode())
    return state.pools_resolved


def _load(path: Path) -> dict[str, Any]:
    """The file, as far as its pools are a list of objects; raises BadSetting."""
    try:
        text = path.read_text(encoding="utf-8")
        toml = path.suffix == ".toml"
        data = tomllib.loads(text) if toml else json.loads(text, object_pairs_hook=_once)
    except OSError as error:
        raise BadSetting(f"{path}: cannot be read ({error.strerror})") from error
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise BadSetting(f"{path}: {place} is no JSON: {error.msg}") from None
    except _Twice as error:
        raise BadSetting(f"{path}: {str(error)!r} is there twice in one object") from None
    except tomllib.TOMLDecodeError as error:
        where = re.search(r"\(at .*\)$", str(error))  # not the rest: it may show a key
        raise BadSetting(f"{path}: cannot be parsed {where[0] if where else ''}") from None
    except (ValueError, RecursionError):
        raise BadSetting(f"{path}: cannot be parsed") from None
    if not isinstance(data, dict):
        raise BadSetting(f"{path}: must be an object with `pools` and `images`")
    rows = data.get("pools")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise BadSetting(f"{path}: pools must be a list of objects")
    if not rows:
        raise BadSetting(f"{path}: pools must name at least one pool")
    return data


class _Twice(Exception):
    """A name that an object has twice: which of them was meant?"""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise _Twice(name)
        found[name] = value
    return found


def _check_keys(path: Path, rows: list[dict[str, Any]], env: Mapping[str, str]) -> None:
    """What is said better here, with the operator's own words, than where pools are built."""
    for n, row in enumerate(rows):
        where = f"{path}: pools[{n}]"
        kind = row.get("kind")
        if kind in ADDRESSES:
            known = {*FIELDS, *KEYS, LOCAL, *ADDRESSES[kind]}
            if unknown := sorted(set(row) - known):
                near = get_close_matches(unknown[0], sorted(known), 1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                raise BadSetting(f"{where}.{unknown[0]} is not known{hint}")
        given = [name for name in (LOCAL, *KEYS) if name in row]
        if len(given) != 1:
            names = ", ".join((LOCAL, *KEYS))
            found = f"; it has {' and '.join(given)}" if given else ""
            raise BadSetting(f"{where} needs exactly one of {names}{found}")
        name = row[given[0]]
        if given[0] == "key_env" and isinstance(name, str) and not env.get(name, "").strip():
            raise BadSetting(f"{where}.key_env: the variable {name!r} is not set")
        if _unprintable(_key(path, given[0], name, env)):
            raise BadSetting(f"{where}.{given[0]}: a key is one line of printable ASCII")


def _key(path: Path, given: str, name: Any, env: Mapping[str, str]) -> str:
    if not isinstance(name, str) or given == LOCAL:
        return ""
    if given == "key_file":
        try:
            return (path.parent / name).read_text(encoding="utf-8")
        except (OSError, ValueError):
            return ""  # what is wrong with it is said where pools are built
    return env.get(name, "") if given == "key_env" else name


def _unprintable(key: str) -> bool:
    """Can it not be sent in a header?"""
    return not all("!" <= letter <= "~" for letter in key.strip())


def _fill(state: State, rows: list[dict[str, Any]], url: str, isolation: str) -> None:
    """Put the host's keys and addresses where a row names its account; raises BadSetting."""
    accounts = _accounts(state)
    for n, row in enumerate(rows):
        if LOCAL not in row:
            continue
        where = f"{source(state)}: pools[{n}]"
        name, kind = row.pop(LOCAL), row.get("kind")
        if not isinstance(name, str) or name not in accounts:
            known = ", ".join(sorted(accounts))
            raise BadSetting(
                f"{where}.{LOCAL} of pool {row.get('id')!r}: {name!r} is no account of the host;"
                f" it has: {known}"
            )
        dialect, key = accounts[name]
        if kind != dialect:
            raise BadSetting(
                f"{where}.kind of pool {row.get('id')!r} is {kind!r}, but the account {name!r}"
                f" is of kind {dialect!r}"
            )
        below = ADDRESSES.get(dialect, {}).items()
        row.update({"key": key, **{at: f"{url}/{dialect}{path}" for at, path in below}})
        row.setdefault("isolation", isolation)


def local_ids(state: State) -> frozenset[str]:
    """The pools of the provider host: what they run ends with it."""
    try:
        data = json.loads(state.pools_resolved.read_text(encoding="utf-8"))
        return frozenset(
            row["id"] for row in data["pools"] if row.get("key") in local_keys(state).values()
        )
    except (OSError, ValueError, KeyError, TypeError, BadSetting):
        return frozenset()


def local_keys(state: State) -> Mapping[str, str]:
    """The host's accounts and their keys; raises BadSetting."""
    return {name: key for name, (_, key) in _accounts(state).items()}


def _accounts(state: State) -> Mapping[str, tuple[str, str]]:
    """The kind and the key of each account of the host; raises BadSetting."""
    try:
        accounts = json.loads(state.host_config.read_text(encoding="utf-8"))["accounts"]
        return {one["name"]: (one["dialect"], one["key"]) for one in accounts}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadSetting(f"{state.host_config}: cannot be read") from error
