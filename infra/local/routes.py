"""Which function serves a method and path, as API Gateway decides it: segments, literals first."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any
from urllib.parse import unquote

from functions.catalog import HTTP, Http
from infra.local.proxy_event import Target

Handler = Callable[[dict[str, Any], Any], Any]


@dataclass(frozen=True)
class Route:
    """One method of the API: the function behind it and how long it may take, in seconds."""

    method: str
    template: str
    function: str
    handler: Handler = field(repr=False)
    timeout: float
    memory: int = 512
    public: bool = False
    stream: bool = False

    @property
    def segments(self) -> list[str]:
        """The template, cut."""
        return self.template.split("/")

    def match(self, segments: list[str]) -> Mapping[str, str] | None:
        """The path parameters, or None when the path is another one."""
        found: dict[str, str] = {}
        for want, have in zip(self.segments, segments, strict=True):
            if want.startswith("{"):
                if not have:
                    return None
                found[want.strip("{}")] = unquote(have)
            elif want != have:
                return None
        return found


def of_catalog(rows: Iterable[Http] = HTTP) -> Iterator[Route]:
    """A route per row of the catalog, with the row's real handler."""
    for row in rows:
        yield Route(
            method=row.method,
            template=row.path,
            function=row.name,
            handler=import_module(row.module).handler,
            timeout=row.timeout,
            memory=row.memory,
            public=row.scope is None,
            stream=row.stream,
        )


class Routes:
    """All methods of the API."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._by_shape: dict[tuple[str, int], list[Route]] = {}
        for route in sorted(routes, key=lambda r: [s.startswith("{") for s in r.segments]):
            self._by_shape.setdefault((route.method, len(route.segments)), []).append(route)

    def find(self, method: str, path: str) -> tuple[Route, Target] | None:
        """The route of a raw path; None for an unknown path and for an unknown method alike."""
        segments = path.split("/")
        for route in self._by_shape.get((method, len(segments)), ()):
            if (parameters := route.match(segments)) is not None:
                return route, Target(route.template, parameters, route.function)
        return None


@dataclass
class Context:
    """Lambda's context object, as far as functions may use it."""

    function_name: str
    timeout: float
    memory_limit_in_mb: int = 512
    function_version: str = "$LATEST"
    aws_request_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    log_group_name: str = "local"
    log_stream_name: str = "local"
    started: float = field(default_factory=time.monotonic, repr=False)

    @property
    def invoked_function_arn(self) -> str:
        """A name of the right form."""
        return f"arn:aws:lambda:local:000000000000:function:{self.function_name}"

    def get_remaining_time_in_millis(self) -> int:
        """What is left of the function's timeout."""
        return max(0, int((self.started + self.timeout - time.monotonic()) * 1000))
