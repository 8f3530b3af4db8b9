"""Types of single values in requests: names, paths, labels, ids, each with its one pattern."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated

from pydantic import Field

from sandbox_router.session.transfers import ID_LENGTH

MIB = 1024 * 1024
ENV_BYTES = 32 * 1024
PATH_BYTES = 4096
LABEL_BYTES = 256
RESERVED_LABELS = ("constal-", "sandbox-router")
"""Beginnings of label keys that integration tags and the Router itself use."""

SANDBOX_ID = r"^sbx-[a-z2-7]{26}$"
SNAPSHOT_ID = r"^snap-[a-z2-7]{26}$"
RECORD_ID = r"^(sbx|snap)-[a-z2-7]{26}$"
"""Of either: what messages and guards name."""
_FRACTION = r"0\.[0-9]{0,2}[1-9]"
SIZE = (
    rf"^([1-9][0-9]{{0,2}}(\.[0-9]{{1,3}})?|{_FRACTION})"
    rf"x([1-9][0-9]{{0,3}}(\.[0-9]{{1,3}})?|{_FRACTION})(:(cheap|fast|stable))?$"
)
UPLOAD_ID = rf"^upl-[A-Za-z0-9_-]{{22,{ID_LENGTH}}}$"
KIND = r"^[a-z0-9][a-z0-9_-]{0,62}$"
LABEL_KEY = r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"

Env = dict[
    Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=128)],
    Annotated[str, Field(max_length=ENV_BYTES)],
]
LabelKey = Annotated[str, Field(pattern=f"^{LABEL_KEY}$")]
LabelValue = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]*$", max_length=LABEL_BYTES)]
Labels = dict[LabelKey, LabelValue]
Name = Annotated[str, Field(pattern=KIND)]
Path = Annotated[str, Field(pattern=r"^/[^\x00\r\n]*$", max_length=PATH_BYTES)]


def env_complaints(env: Mapping[str, str], at: str = "env") -> Iterator[tuple[str, str]]:
    """What is wrong with environment variables as a whole."""
    size = sum(len(name) + len(value.encode()) for name, value in env.items())
    if size > ENV_BYTES:
        yield at, f"at most {ENV_BYTES} bytes in names and values"


def label_complaints(labels: Mapping[str, str], at: str = "labels") -> Iterator[tuple[str, str]]:
    """What is wrong with labels besides their syntax."""
    for key, value in labels.items():
        if key.lower().startswith(RESERVED_LABELS):
            yield f"{at}.{key}", "this key is reserved"
        if len(value.encode()) > LABEL_BYTES:
            yield f"{at}.{key}", f"at most {LABEL_BYTES} bytes"


def path_complaints(path: str, at: str, *, entry: bool = False) -> Iterator[tuple[str, str]]:
    """What is wrong with a path in a sandbox; `entry`: it must name something below the root.

    What is percent-encoded once more is part of a name: `%2e%2e` is no way up.
    """
    segments = path.split("/")
    if len(path.encode()) > PATH_BYTES:
        yield at, f"at most {PATH_BYTES} bytes"
    if ".." in segments:
        yield at, "must not have a `..` segment"
    if entry and not set(segments) - {"", "."}:
        yield at, "must name something below the root"
