"""One call of an operation, and its answer, without the gateway's shapes."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from functions.catalog import Http
from sandbox_router.model.failure import Invalid, NotFound
from sandbox_router.model.principal import Principal

from .fields import KIND, SANDBOX_ID, SNAPSHOT_ID, UPLOAD_ID
from .principal import principal_of
from .sse import Frames

_REQUEST_ID = re.compile(r"[A-Za-z0-9=_.:-]{1,128}", re.ASCII)
_ID, _KIND, _UPLOAD_ID, _SNAPSHOT_ID = (
    re.compile(p.strip("^$")) for p in (SANDBOX_ID, KIND, UPLOAD_ID, SNAPSHOT_ID)
)


@dataclass(frozen=True)
class Call:
    """What a handler knows of its request besides the models it asked for."""

    row: Http
    event: Mapping[str, Any] = field(repr=False)

    @cached_property
    def request_id(self) -> str:
        """The gateway's id of this request."""
        text = str((self.event.get("requestContext") or {}).get("requestId") or "")
        return text if _REQUEST_ID.fullmatch(text) else str(uuid.uuid4())

    @property
    def place(self) -> str:
        """The path as the client has it: a gateway may serve ours below a stage."""
        return str((self.event.get("requestContext") or {}).get("path") or self.row.path)

    @cached_property
    def principal(self) -> Principal:
        """The caller; raises Unauthenticated."""
        return principal_of(self.event)

    @property
    def tenant(self) -> str:
        """Whose call it is."""
        return self.principal.tenant

    @property
    def sandbox_id(self) -> str:
        """The sandbox of the path; what cannot be one is not found like any other."""
        return self._named("id", _ID)

    @property
    def snapshot_id(self) -> str:
        """The snapshot of the path."""
        return self._named("snapshot_id", _SNAPSHOT_ID)

    @property
    def kind(self) -> str:
        """The provider kind of the path."""
        return self._named("kind", _KIND)

    @property
    def upload_id(self) -> str:
        """The upload of the path."""
        return self._named("upload_id", _UPLOAD_ID)

    @property
    def port(self) -> int:
        """The port of the path; raises Invalid."""
        text = self._path("port")
        if not re.fullmatch(r"[0-9]{1,5}", text) or not 1 <= int(text) <= 65_535:
            raise Invalid(fields=(("port", "must be 1 to 65535"),))
        return int(text)

    def _named(self, name: str, pattern: re.Pattern[str]) -> str:
        text = self._path(name)
        if not pattern.fullmatch(text):
            raise NotFound
        return text

    def _path(self, name: str) -> str:
        return str((self.event.get("pathParameters") or {}).get(name) or "")

    @cached_property
    def headers(self) -> Mapping[str, Sequence[str]]:
        """Every value of every header, by lower-case name."""
        found: dict[str, list[str]] = {}
        for name, values in self._multi("multiValueHeaders", "headers").items():
            found.setdefault(name.lower(), []).extend(values)
        return found

    @property
    def query(self) -> Mapping[str, Sequence[str]]:
        """Every value of every query parameter."""
        return self._multi("multiValueQueryStringParameters", "queryStringParameters")

    def _multi(self, many: str, single: str) -> Mapping[str, Sequence[str]]:
        found = self.event.get(many)
        if found is not None:
            return {name: values for name, values in found.items() if values}
        return {name: [value] for name, value in (self.event.get(single) or {}).items()}

    def header(self, name: str) -> str | None:
        """A header that may be there once; raises Invalid."""
        values = self.headers.get(name.lower(), ())
        if len(values) > 1:
            raise Invalid(fields=((name, "given more than once"),))
        return values[0] if values else None


@dataclass(frozen=True)
class Answer:
    """What a handler answers. body: text is a finished document, bytes are a file's content,
    anything else becomes JSON; None is no body. headers: besides those every answer has. events:
    server-sent, instead of a body.
    """

    status: int
    body: Any = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict)
    events: Frames | None = field(default=None, repr=False)
