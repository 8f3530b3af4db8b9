"""Query parameters and headers of requests, as closed models; the source of their schemas."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from sandbox_router.model.failure import Invalid
from sandbox_router.model.sandbox import State

from .fields import KIND, LABEL_BYTES, LABEL_KEY, Path, path_complaints

LIMIT, LIMIT_MAX = 50, 200
WAIT, WAIT_MAX = 20, 25
_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_STATES = tuple(str(state) for state in State)
Complaints = Iterator[tuple[str, str]]


class Params(BaseModel):
    """A closed set of parameters."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    def complaints(self) -> Complaints:
        """(path, reason) pairs no schema can say."""
        yield from ()


def _number(value: object) -> object:
    if isinstance(value, str) and not re.fullmatch(r"\d{1,9}", value, re.ASCII):
        raise ValueError("must be a whole number")
    return value


def _flag(value: object) -> object:
    if isinstance(value, str) and value not in ("true", "false"):
        raise ValueError("must be true or false")
    return value


def commas(value: object) -> object:
    """Several values in one parameter."""
    if not isinstance(value, list):
        return value
    return [part for item in value for part in item.split(",")]


class NoQuery(Params):
    """An operation without query parameters."""


class PageQuery(Params):
    """Which part of a list."""

    created_after: str | None = Field(
        None, json_schema_extra={"format": "date-time"}, description="RFC 3339 with an offset"
    )
    limit: Annotated[int, Field(ge=1, le=LIMIT_MAX), BeforeValidator(_number)] = LIMIT
    cursor: Annotated[str, Field(pattern=r"^[!-~]{1,4096}$")] | None = Field(
        None, description="`next_cursor` of the page before; valid for 24 hours"
    )

    @property
    def created_after_ms(self) -> int | None:
        """In ms; raises Invalid."""
        if self.created_after is None:
            return None
        try:
            if _TIME.fullmatch(self.created_after):
                text = self.created_after.upper().replace("Z", "+00:00")
                return (datetime.fromisoformat(text) - _EPOCH) // timedelta(milliseconds=1)
        except (ValueError, OverflowError):
            pass
        raise Invalid(fields=(("created_after", "must be an RFC 3339 time with an offset"),))


class ListQuery(PageQuery):
    """Which sandboxes to list."""

    state: Annotated[
        list[Literal[_STATES]],  # type: ignore[valid-type]
        Field(max_length=32),
        BeforeValidator(commas),
    ] = Field([], description="Repeatable; without it all but `destroyed`")
    label: Annotated[
        list[Annotated[str, Field(pattern=rf"^{LABEL_KEY}=[^\x00-\x1f\x7f]*$")]],
        Field(max_length=15),
    ] = Field([], description="`key=value`, exact, repeatable: all of them must match")
    provider: Annotated[str, Field(pattern=KIND)] | None = Field(None, description="A kind")

    @property
    def labels(self) -> tuple[tuple[str, str], ...]:
        """Pairs."""
        return tuple((key, value) for key, _, value in (item.partition("=") for item in self.label))

    def complaints(self) -> Complaints:
        """Values no label can have."""
        if any(len(value.encode()) > LABEL_BYTES for _, value in self.labels):
            yield "label", f"at most {LABEL_BYTES} bytes in a value"


class GetQuery(Params):
    """How fresh the answer must be."""

    refresh: Annotated[bool, BeforeValidator(_flag)] = Field(
        False, description="Look at the provider first"
    )


class PathQuery(Params):
    """A directory."""

    path: Path = Field(description="Absolute path in the sandbox, byte-exact", examples=["/tmp"])

    def complaints(self) -> Complaints:
        """No way up."""
        yield from path_complaints(self.path, "path")


class FileQuery(PathQuery):
    """A file, or with DELETE a directory too."""

    def complaints(self) -> Complaints:
        """No way up, and not the root."""
        yield from path_complaints(self.path, "path", entry=True)


class CreateHeaders(Params):
    """What a create may say in headers."""

    idempotency_key: (
        Annotated[
            str,
            Field(pattern=r'^("([!#-\[\]-~]|\\["\\]){1,255}"|[!#-~][!-~]{0,254})$'),
        ]
        | None
    ) = Field(
        None,
        alias="Idempotency-Key",
        description="1 to 255 visible characters, quoted or bare; a retry with it and the same "
        "body is answered with the first result",
    )
    prefer: str | None = Field(
        None,
        alias="Prefer",
        description=f"`wait=N`: seconds to wait until it runs, or is ready, 0 to {WAIT_MAX}; "
        f"{WAIT} without it",
        examples=["wait=20"],
    )

    @property
    def key(self) -> str | None:
        """The idempotency key, unquoted: quoted or bare it is the same key."""
        text = self.idempotency_key
        if text is None or not text.startswith('"'):
            return text
        return re.sub(r'\\(["\\])', r"\1", text[1:-1])

    @property
    def wait(self) -> int | None:
        """Seconds the client is ready to wait; other preferences are not ours to refuse."""
        for preference in (self.prefer or "").split(","):
            name, _, value = preference.partition(";")[0].partition("=")
            if name.strip().lower() == "wait":
                return _seconds(value.strip().strip('"'))
        return None


def _seconds(text: str) -> int:
    if not re.fullmatch(r"\d{1,4}", text, re.ASCII) or int(text) > WAIT_MAX:
        raise Invalid(fields=(("Prefer", f"wait must be 0 to {WAIT_MAX} seconds"),))
    return int(text)
