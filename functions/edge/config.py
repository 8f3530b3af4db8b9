"""The file with the operator's pools and image table, TOML (`*.toml`) or JSON, checked in full.

    [[pools]]                            # in the operator's order
    id = "pool-e2b-main"
    kind = "e2b"
    key_env = "E2B_API_KEY"              # or key_file = "e2b.key", or key = "..."
    region = "us-west-2"                 # optional, as are geo, isolation, max_ttl_seconds,
    geo = "us"                           # draining and the kind's own settings (api_url, ...)

    [images.default.e2b]                 # image, then a kind or a pool's id
    "2x4" = "base"                       # size = the vendor's reference
    [images.default]                     # a kind that gives any image any size
    opensandbox = "python:3.12"          # needs no sizes

    [event_sources."acme.orders"]        # who sends events with this source, and what they may
    tenant = "acme"
    scopes = ["sandboxes:write"]
    account = "123456789012"             # optional: the AWS account they must come from

Errors name the file and the place in it, never a value that could be a key.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from functions.catalog import READ, WRITE
from sandbox_router.model.event import SOURCE
from sandbox_router.model.failure import Invalid
from sandbox_router.model.pool import Prepared
from sandbox_router.model.secret import Secret
from sandbox_router.model.size import parse
from sandbox_router.model.spec import Isolation

from .pools import Document
from .settings import BadSetting

_ID = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_KEYS = ("key", "key_env", "key_file")
_OPTIONAL: Mapping[str, type] = {
    "region": str,
    "geo": str,
    "isolation": str,
    "max_ttl_seconds": int,
    "draining": bool,
}
Images = Mapping[str, tuple[Prepared, ...]]
_Target = Images | str


@dataclass(frozen=True)
class PoolConfig:
    """One account. settings: what the kind itself understands. images: by size; any_size: image ->
    reference.
    """

    id: str
    kind: str
    key: Secret
    region: str | None = None
    geo: str | None = None
    isolation: Isolation | None = None
    max_ttl_seconds: int | None = None
    draining: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)
    images: Images = field(default_factory=dict)
    any_size: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class EventSource:
    """Whose the events with one `source` are."""

    tenant: str
    scopes: frozenset[str]
    account: str | None = None


def read(
    path: Path | Document, kinds: frozenset[str], variables: Mapping[str, str]
) -> tuple[PoolConfig, ...]:
    """The pools of a file; raises BadSetting with the first thing that is wrong."""
    return _Reader(path, kinds, variables).pools()


def read_sources(path: Path | Document) -> Mapping[str, EventSource]:
    """The event sources of a file by name; raises BadSetting."""
    return _Reader(path, frozenset(), {}).sources()


class _Reader:
    def __init__(
        self, path: Path | Document, kinds: frozenset[str], variables: Mapping[str, str]
    ) -> None:
        self._path, self._kinds, self._variables = path, kinds, variables

    def pools(self) -> tuple[PoolConfig, ...]:
        data = self._object(self._load(), "the file")
        if unknown := sorted(set(data) - {"pools", "images", "event_sources"}):
            raise self._bad(unknown[0], "is none of `pools`, `images` and `event_sources`")
        rows = data.get("pools", [])
        if not isinstance(rows, list):
            raise self._bad("pools", "must be a list")
        ids: list[str] = []
        for n, row in enumerate(rows):
            ids.append(self._id(self._object(row, f"pools[{n}]"), f"pools[{n}]", ids))
        images = self._images(data.get("images", {}), frozenset(ids))
        return tuple(
            self._pool(row, name, f"pools[{n}]", images)
            for n, (row, name) in enumerate(zip(rows, ids, strict=True))
        )

    def sources(self) -> Mapping[str, EventSource]:
        rows = self._object(self._load(), "the file").get("event_sources", {})
        return {
            name: self._source(self._object(row, f"event_sources.{name}"), name)
            for name, row in self._object(rows, "event_sources").items()
        }

    def _source(self, row: dict[str, Any], name: str) -> EventSource:
        where = f"event_sources.{name}"
        if unknown := sorted(set(row) - {"tenant", "scopes", "account"}):
            raise self._bad(f"{where}.{unknown[0]}", "is not known")
        if name == SOURCE:
            raise self._bad(where, "is the Router's own: its events would come back")
        scopes = row.get("scopes")
        known = isinstance(scopes, list) and all(scope in (READ, WRITE) for scope in scopes)
        if not scopes or not known:
            raise self._bad(f"{where}.scopes", f"must be a list of {READ} and {WRITE}")
        account = self._text(row, "account", where) if "account" in row else None
        return EventSource(self._text(row, "tenant", where), frozenset(scopes), account)

    def _bad(self, where: str, what: str) -> BadSetting:
        return BadSetting(f"{self._path}: {where} {what}")

    def _load(self) -> Any:
        try:
            if isinstance(self._path, Document):
                return json.loads(self._path.text)
            text = self._path.read_text(encoding="utf-8")
            return tomllib.loads(text) if self._path.suffix == ".toml" else json.loads(text)
        except OSError as error:
            raise BadSetting(f"{self._path}: cannot be read ({error.strerror})") from error
        except json.JSONDecodeError as error:
            place = f"line {error.lineno}, column {error.colno}"
            raise self._bad(place, f"is no JSON: {error.msg}") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
            where = re.search(r"\(at .*\)$", str(error))
            raise self._bad("the file", f"cannot be parsed {where[0] if where else ''}") from None

    def _object(self, value: Any, where: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self._bad(where, "must be an object")
        return value

    def _id(self, row: dict[str, Any], where: str, taken: list[str]) -> str:
        name = self._text(row, "id", where)
        if not _ID.fullmatch(name):
            raise self._bad(f"{where}.id", "must be lower-case letters, digits and hyphens")
        if name in taken:
            raise self._bad(f"{where}.id", f"{name!r} is there twice")
        if name in self._kinds:
            raise self._bad(f"{where}.id", f"{name!r} is the name of a kind")
        return name

    def _text(self, row: Mapping[str, Any], name: str, where: str) -> str:
        value = row.get(name)
        if not isinstance(value, str) or not value.strip():
            raise self._bad(f"{where}.{name}", "must be a text, and not empty")
        return value

    def _pool(
        self, row: dict[str, Any], name: str, where: str, images: Mapping[str, dict[str, _Target]]
    ) -> PoolConfig:
        kind = self._text(row, "kind", where)
        if kind not in self._kinds:
            known = ", ".join(sorted(self._kinds))
            raise self._bad(f"{where}.kind", f"{kind!r} is not known; known are: {known}")
        for field_name, wanted in _OPTIONAL.items():
            if field_name in row and type(row[field_name]) is not wanted:
                raise self._bad(f"{where}.{field_name}", f"must be of type {wanted.__name__}")
        found = self._images_of(name, kind, images)
        any_size = self._any_size_of(name, kind, images)
        if "default" not in {**found, **any_size}:
            raise self._bad("images.default", f"maps neither {name!r} nor its kind {kind!r}")
        own = set(row) - {"id", "kind", *_KEYS, *_OPTIONAL}
        return PoolConfig(
            id=name,
            kind=kind,
            key=self._key(row, where),
            region=row.get("region"),
            geo=row.get("geo"),
            isolation=self._isolation(row, where),
            max_ttl_seconds=self._seconds(row, where),
            draining=row.get("draining", False),
            settings={key: self._text(row, key, where) for key in sorted(own)},
            images=found,
            any_size=any_size,
        )

    def _isolation(self, row: Mapping[str, Any], where: str) -> Isolation | None:
        if "isolation" not in row:
            return None
        try:
            return Isolation(row["isolation"])
        except ValueError:
            levels = ", ".join(Isolation)
            raise self._bad(f"{where}.isolation", f"must be one of {levels}") from None

    def _seconds(self, row: Mapping[str, Any], where: str) -> int | None:
        value: int | None = row.get("max_ttl_seconds")
        if value is not None and value < 1:
            raise self._bad(f"{where}.max_ttl_seconds", "must be at least 1")
        return value

    def _key(self, row: Mapping[str, Any], where: str) -> Secret:
        given = [name for name in _KEYS if name in row]
        if len(given) != 1:
            raise self._bad(where, "needs exactly one of key, key_env and key_file")
        text = self._text(row, given[0], where)
        if given[0] == "key_env":
            found = self._variables.get(text, "")
        elif given[0] == "key_file":
            found = self._file(text, where)
        else:
            found = text
        if not found.strip():
            raise self._bad(f"{where}.{given[0]}", "leads to no key")
        return Secret(found.strip())

    def _file(self, name: str, where: str) -> str:
        if isinstance(self._path, Document):
            raise self._bad(f"{where}.key_file", "is for pools that are kept in a file")
        path = self._path.parent / name
        try:
            return path.read_text(encoding="utf-8")
        except OSError as error:
            reason = f"{path} cannot be read ({error.strerror})"
            raise self._bad(f"{where}.key_file:", reason) from error
        except UnicodeDecodeError:
            raise self._bad(f"{where}.key_file:", f"{path} is no text") from None

    def _images(self, value: Any, ids: frozenset[str]) -> Mapping[str, dict[str, _Target]]:
        """image -> kind or pool id -> what is prepared, or the reference at any size."""
        found: dict[str, dict[str, _Target]] = {}
        for image, targets in self._object(value, "images").items():
            at = f"images.{image}"
            found[image] = {}
            for target, sizes in self._object(targets, at).items():
                if target not in ids | self._kinds:
                    raise self._bad(f"{at}.{target}", "is neither a pool of this file nor a kind")
                if isinstance(sizes, str):
                    found[image][target] = self._text(targets, target, at)
                    continue
                found[image][target] = {
                    size: (Prepared(self._text(sizes, size, f"{at}.{target}"), shape),)
                    for size, shape in self._shapes(sizes, f"{at}.{target}")
                }
        return found

    def _shapes(self, sizes: Any, where: str) -> list[tuple[str, Any]]:
        shapes = []
        for size in self._object(sizes, where):
            try:
                shape, suffix = parse(size)
            except Invalid:
                shape, suffix = None, "price"
            if suffix is not None or shape is None:
                raise self._bad(f"{where}.{size}", "is no size such as 2x4")
            shapes.append((size, shape))
        return shapes

    def _images_of(
        self, name: str, kind: str, images: Mapping[str, dict[str, _Target]]
    ) -> dict[str, tuple[Prepared, ...]]:
        """A pool's own entries replace those of its kind, size by size."""
        found: dict[str, tuple[Prepared, ...]] = {}
        for image, targets in images.items():
            merged: dict[str, tuple[Prepared, ...]] = {}
            for sizes in (targets.get(kind), targets.get(name)):
                merged.update(sizes if isinstance(sizes, Mapping) else {})
            if merged:
                found[image] = tuple(prepared for (prepared,) in merged.values())
        return found

    def _any_size_of(
        self, name: str, kind: str, images: Mapping[str, dict[str, _Target]]
    ) -> dict[str, str]:
        found = {image: targets.get(name, targets.get(kind)) for image, targets in images.items()}
        return {image: text for image, text in found.items() if isinstance(text, str)}
