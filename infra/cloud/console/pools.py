"""An operator's pools file into the deployment's secret, once its functions could read it."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from functions.edge.config import read_sources
from functions.edge.pools import Document
from functions.edge.settings import BadSetting, Settings
from functions.edge.wiring import ConfiguredPools
from infra.cloud.console.deployed import Deployed

LIMIT_BYTES = 65_536
"""Secrets Manager's own, of one value (API reference, PutSecretValue)."""


@dataclass(frozen=True)
class Changed:
    """Ids of pools: those there are now, in order, and those that were there before."""

    now: tuple[str, ...]
    gone: tuple[str, ...]


def put(deployed: Deployed, path: Path, env: Mapping[str, str]) -> Changed:
    """Replace the deployment's pools by a file's; raises BadSetting, and then nothing changed.

    `key_env` and `key_file` are looked up here: a function has neither.
    """
    document = Document(str(path), _resolved(path, env))
    now = _ids(document)
    if len(document.text.encode()) > LIMIT_BYTES:
        raise BadSetting(f"{path}: over {LIMIT_BYTES} bytes with its keys, too much for a secret")
    client = _secrets(deployed.region)
    secret = deployed.variables["POOLS_SECRET_ARN"]
    before = _before(client.get_secret_value(SecretId=secret)["SecretString"])
    client.put_secret_value(SecretId=secret, SecretString=document.text)
    return Changed(now, tuple(sorted(before - set(now))))


def _secrets(region: str) -> Any:
    import boto3  # type: ignore[import-untyped]

    return boto3.client("secretsmanager", region_name=region)


def _resolved(path: Path, env: Mapping[str, str]) -> str:
    """The file as JSON, every key in its row."""
    ConfiguredPools(Settings(state=path.parent, pools=path, variables=env))
    read_sources(path)
    text = path.read_text(encoding="utf-8")
    data = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    for row in data.get("pools", []):
        row["key"] = _key(row, path, env)
    return json.dumps(data)


def _key(row: dict[str, Any], path: Path, env: Mapping[str, str]) -> str:
    if (name := row.pop("key_env", None)) is not None:
        return env[str(name)].strip()
    if (file := row.pop("key_file", None)) is not None:
        return (path.parent / str(file)).read_text(encoding="utf-8").strip()
    return str(row["key"])


def _ids(document: Document) -> tuple[str, ...]:
    """As the functions will read them."""
    pools = ConfiguredPools(Settings(state=Path()), document=document)
    return tuple(pool.id for pool in pools.all())


def _before(text: str) -> set[str]:
    """The ids of what is replaced; none where it was never readable."""
    try:
        return set(_ids(Document("the secret with the pools", text)))
    except BadSetting:
        return set()
