"""The pools file of a local deployment: the first one written, and accounts of the host filled in.

In the operator's file a pool of the provider host says `"local_account": NAME` instead of a key and
addresses: its key is the host's, its address changes with the host's port, and its isolation is
what the host's engine really gives on this machine.
"""

from __future__ import annotations

import json
import secrets
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from functions.edge.settings import BadSetting
from infra.local.hosting import Host
from infra.local.state import State, write_private

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


def prepare(state: State) -> None:
    """Write the host's accounts and the pools file, unless they are there."""
    if not state.host_config.exists():
        accounts = [
            {"name": name, "dialect": kind, "key": f"{kind}_{secrets.token_hex(20)}"}
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


def resolved(state: State, host: Host) -> Path:
    """The file to build from: the operator's, with local accounts filled in; raises BadSetting."""
    path = source(state)
    try:
        text = path.read_text(encoding="utf-8")
        data = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
        rows = [row for row in data["pools"] if LOCAL in row]
    except (OSError, ValueError, RecursionError, KeyError, TypeError):
        return path  # what is wrong with it is said where all of it is checked
    keys = local_keys(state)
    for row in rows:
        name = row.pop(LOCAL)
        if not isinstance(name, str) or name not in keys:
            known = ", ".join(sorted(keys))
            raise BadSetting(f"{path}: {LOCAL} must be an account of the host: {known}")
        kind = str(row.get("kind"))
        below = ADDRESSES.get(kind, {}).items()
        own = {setting: f"{host.url}/{kind}{path}" for setting, path in below}
        row.update({"key": keys[name], **own})
        row.setdefault("isolation", host.isolation)
    write_private(state.pools_resolved, json.dumps(data).encode())
    return state.pools_resolved


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
    try:
        accounts = json.loads(state.host_config.read_text(encoding="utf-8"))["accounts"]
        return {account["name"]: account["key"] for account in accounts}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadSetting(f"{state.host_config}: cannot be read") from error
