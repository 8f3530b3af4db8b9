"""The host's configuration: accounts at vendors and the templates that instances are made of."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infra.local.host.instance import Template

DEFAULT_TEMPLATES = {
    "base": Template(2, 512, 1024),
    "base-1x1": Template(1, 1024, 10240),
    "base-1x2": Template(1, 2048, 10240),
    "base-2x4": Template(2, 4096, 10240),
    "base-4x8": Template(4, 8192, 10240),
    "base-8x16": Template(8, 16384, 10240),
}
_LIMITS = {"vcpu": (1, 128), "memory_mib": (128, 1 << 20), "disk_mib": (16, 1 << 24)}


class ConfigError(ValueError):
    """The configuration file says something the host cannot be."""


@dataclass(frozen=True, slots=True)
class Account:
    """An account at a vendor, as its key opens it."""

    name: str
    dialect: str
    key: str
    max_instances: int | None = None

    def __repr__(self) -> str:
        return f"Account({self.name!r}, {self.dialect!r})"


@dataclass(frozen=True, slots=True)
class Config:
    """Everything the configuration file says."""

    accounts: tuple[Account, ...]
    templates: dict[str, Template]

    def of_dialect(self, dialect: str) -> tuple[Account, ...]:
        """Return the accounts of one dialect."""
        return tuple(account for account in self.accounts if account.dialect == dialect)


def read_config(path: Path, dialects: frozenset[str]) -> Config:
    """Read and check the configuration file."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot read the configuration: {error}") from error
    if not isinstance(data, dict):
        raise ConfigError("the configuration must be a JSON object")
    unknown = sorted(set(data) - {"accounts", "templates"})
    if unknown:
        raise ConfigError(f"unknown setting {unknown[0]!r}")
    accounts = tuple(_account(item, dialects) for item in _list(data, "accounts"))
    for attribute in ("name", "key"):
        values = [getattr(account, attribute) for account in accounts]
        if len(set(values)) != len(values):
            raise ConfigError(f"two accounts have the same {attribute}")
    templates = data.get("templates")
    if templates is None:
        return Config(accounts, dict(DEFAULT_TEMPLATES))
    if not isinstance(templates, dict) or not templates:
        raise ConfigError("templates must be an object with at least one entry")
    return Config(accounts, {name: _template(name, item) for name, item in templates.items()})


def _list(data: dict[str, Any], name: str) -> list[Any]:
    value = data.get(name)
    if not isinstance(value, list):
        raise ConfigError(f"{name} must be a list")
    return value


def _account(item: Any, dialects: frozenset[str]) -> Account:
    if not isinstance(item, dict):
        raise ConfigError("an account must be an object")
    for name in ("name", "dialect", "key"):
        if not isinstance(item.get(name), str) or not item[name]:
            raise ConfigError(f"an account needs a {name}")
    if item["dialect"] not in dialects:
        raise ConfigError(f"unknown dialect {item['dialect']!r}; known: {', '.join(dialects)}")
    most = item.get("max_instances")
    if most is not None and (not isinstance(most, int) or isinstance(most, bool) or most < 0):
        raise ConfigError("max_instances must be a whole number")
    return Account(item["name"], item["dialect"], item["key"], most)


def _template(name: str, item: Any) -> Template:
    if not isinstance(item, dict) or set(item) != set(_LIMITS):
        raise ConfigError(f"template {name!r} needs exactly: {', '.join(_LIMITS)}")
    for field, (lowest, highest) in _LIMITS.items():
        value = item[field]
        if not isinstance(value, int) or isinstance(value, bool):
            raise ConfigError(f"template {name!r}: {field} must be a whole number")
        if not lowest <= value <= highest:
            raise ConfigError(f"template {name!r}: {field} must be {lowest} to {highest}")
    return Template(**item)
