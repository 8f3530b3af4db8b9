"""What the environment says: read once, here and nowhere else."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from functions.catalog import TTL_MAX, TTL_MIN

BACKENDS = frozenset({"aws", "embedded"})
QUEUES = ("create", "teardown", "letters")
SECRETS = ("pepper", "pools", "vault")


class BadSetting(Exception):
    """A setting cannot be used; the text names the variable or file, and never a secret."""


@dataclass(frozen=True, eq=False)
class Names:
    """What a deployment on AWS is made of: a table, a bucket, a bus, queue URLs and ARNs of
    secrets.
    """

    table: str
    bucket: str
    bus: str
    queues: Mapping[str, str]
    secrets: Mapping[str, str]

    @classmethod
    def of(cls, env: Mapping[str, str]) -> Names:
        """The names in these variables; raises BadSetting."""
        return cls(
            table=_needed(env, "TABLE_NAME"),
            bucket=_needed(env, "BUCKET_NAME"),
            bus=_needed(env, "EVENT_BUS_NAME"),
            queues={name: _needed(env, f"{name.upper()}_QUEUE_URL") for name in QUEUES},
            secrets={name: _needed(env, f"{name.upper()}_SECRET_ARN") for name in SECRETS},
        )


@dataclass(frozen=True)
class Settings:
    """Where a deployment keeps what. Files default to names under `state`.

    deployment: this deployment's name at providers; by default it follows from the pepper. pools:
    the file with pools and images (see `config`). pepper: the file with the secret that keys the
    hashes of API keys, bodies and cursors. streaming: do integrations that may stream do so?
    objects_url: of who answers the signed URLs of objects in files. variables: looked up for the
    keys of pools only. aws: only with that backend, which keeps nothing in files.
    """

    state: Path
    backend: str = "embedded"
    deployment: str | None = None
    pools: Path | None = None
    pepper: Path | None = None
    vault: Path | None = None
    max_ttl_seconds: int = TTL_MAX
    streaming: bool = True
    objects_url: str = "http://127.0.0.1:8080"
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    aws: Names | None = None

    @classmethod
    def of(cls, env: Mapping[str, str]) -> Settings:
        """The settings in these variables; raises BadSetting."""
        backend = env.get("BACKEND") or "embedded"
        if backend not in BACKENDS:
            raise BadSetting(f"BACKEND={backend!r} is none of {', '.join(sorted(BACKENDS))}")
        return cls(
            state=Path(env.get("STATE") or ".state"),
            backend=backend,
            deployment=env.get("DEPLOYMENT") or None,
            pools=_path(env, "POOLS"),
            pepper=_path(env, "PEPPER_FILE"),
            vault=_path(env, "VAULT_KEY_FILE"),
            max_ttl_seconds=_seconds(env, "MAX_TTL_SECONDS"),
            streaming=_switch(env, "STREAMING"),
            variables=env,
            aws=Names.of(env) if backend == "aws" else None,
        )

    @classmethod
    def current(cls) -> Settings:
        """The settings of this process; raises BadSetting."""
        return cls.of(dict(os.environ))

    @property
    def table_file(self) -> Path:
        """The embedded backend's records."""
        return self.state / "router.db"

    @property
    def queue_file(self) -> Path:
        """The embedded backend's queues, in a file of their own: neither waits for the other."""
        return self.state / "queue.db"

    @property
    def objects_folder(self) -> Path:
        """The embedded backend's objects."""
        return self.state / "objects"

    @property
    def events_file(self) -> Path:
        """The embedded backend's bus."""
        return self.state / "events.jsonl"

    @property
    def letters_file(self) -> Path:
        """What was sent to the embedded backend and could not be taken."""
        return self.state / "dead-letters.jsonl"

    @property
    def pools_file(self) -> Path:
        """Pools and images."""
        return self.pools or self.state / "pools.json"

    @property
    def pepper_file(self) -> Path:
        """The pepper."""
        return self.pepper or self.state / "pepper"

    @property
    def vault_file(self) -> Path:
        """The vault's key."""
        return self.vault or self.state / "vault.key"


def _needed(env: Mapping[str, str], name: str) -> str:
    text = env.get(name)
    if not text:
        raise BadSetting(f"{name} is needed with BACKEND=aws")
    return text


def _path(env: Mapping[str, str], name: str) -> Path | None:
    text = env.get(name)
    return Path(text) if text else None


def _seconds(env: Mapping[str, str], name: str) -> int:
    text = env.get(name) or str(TTL_MAX)
    if not (text.isascii() and text.isdecimal() and TTL_MIN <= int(text[:9]) <= TTL_MAX):
        raise BadSetting(f"{name}={text!r} is not a number from {TTL_MIN} to {TTL_MAX}")
    return int(text)


def _switch(env: Mapping[str, str], name: str) -> bool:
    text = env.get(name) or "on"
    if text not in ("on", "off"):
        raise BadSetting(f"{name}={text!r} is neither on nor off")
    return text == "on"
