"""E2B's list: filters, order, pages. Facts: openapi.yml, GET /v2/sandboxes."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import parse_qsl, unquote

from starlette.datastructures import QueryParams

from infra.local.host.dialects.e2b.errors import ApiError
from infra.local.host.dialects.e2b.views import visible
from infra.local.host.instance import Instance, State, now_ms

_MAX_LIMIT = 100
Position = tuple[int, str]


@dataclass(frozen=True, slots=True)
class Query:
    """What a list asks for."""

    metadata: dict[str, str]
    states: frozenset[str]
    descending: bool
    started_after_ms: int | None
    template: str | None
    limit: int
    after: Position | None


@dataclass(frozen=True, slots=True)
class Page:
    """One page, the cursor of the next, and how many run in all."""

    instances: list[Instance]
    next_token: str | None
    total_running: int


def read_query(params: QueryParams) -> Query:
    """Read a list's parameters."""
    states = frozenset(",".join(params.getlist("state")).split(",")) - {""}
    if states - {"running", "paused"}:
        raise ApiError(400, "state must be running or paused")
    order = params.get("order", "desc")
    if order not in ("asc", "desc"):
        raise ApiError(400, "order must be asc or desc")
    return Query(
        metadata=metadata_of(params.get("metadata", "")),
        states=states or frozenset({"running", "paused"}),
        descending=order == "desc",
        started_after_ms=_moment(params.get("startedAfter")),
        template=params.get("template"),
        limit=limit_of(params),
        after=after_of(params),
    )


def metadata_of(text: str) -> dict[str, str]:
    """Read a metadata filter: a query string of its own, whose parts are encoded once more."""
    return {unquote(name): unquote(value) for name, value in parse_qsl(text, True)}


def find(instances: Iterable[Instance], query: Query, lag_seconds: float = 0) -> Page:
    """Return the page of one account's instances that a query asks for."""
    shown = [one for one in instances if _shown(one, lag_seconds) and _matches(one, query)]
    running = sum(one.state is not State.PAUSED for one in shown)
    shown = [one for one in shown if _state(one) in query.states]
    shown.sort(key=_key, reverse=query.descending)
    if query.after is not None:
        after = query.after
        shown = [
            one for one in shown if (_key(one) < after if query.descending else _key(one) > after)
        ]
    page = shown[: query.limit]
    more = len(shown) > len(page)
    return Page(page, token_of(_key(page[-1])) if more and page else None, running)


def _shown(instance: Instance, lag_seconds: float) -> bool:
    lag = lag_seconds * 1000
    if instance.state is State.GONE and instance.gone_ms is not None:
        return lag > 0 and now_ms() - instance.gone_ms < lag
    return visible(instance) and now_ms() - instance.created_ms >= lag


def _matches(instance: Instance, query: Query) -> bool:
    metadata = instance.request.metadata
    return (
        all(metadata.get(name) == value for name, value in query.metadata.items())
        and query.template in (None, instance.request.template)
        and (query.started_after_ms is None or instance.created_ms >= query.started_after_ms)
    )


def _state(instance: Instance) -> str:
    return "paused" if instance.state is State.PAUSED else "running"


def _key(instance: Instance) -> Position:
    return (instance.created_ms, instance.id)


def token_of(position: Position) -> str:
    """Return the cursor of what comes after a position."""
    return base64.urlsafe_b64encode(f"{position[0]}.{position[1]}".encode()).decode()


def after_of(params: QueryParams) -> Position | None:
    """Return the position that a list's cursor stands for."""
    token = params.get("nextToken")
    if not token:
        return None
    try:
        moment, _, instance_id = base64.urlsafe_b64decode(token).decode().partition(".")
        return int(moment), instance_id
    except (binascii.Error, ValueError) as error:
        raise ApiError(400, "invalid nextToken") from error


def limit_of(params: QueryParams) -> int:
    """Return how many entries a page may have."""
    text = params.get("limit", str(_MAX_LIMIT))
    if not text.isdigit() or not 1 <= int(text) <= _MAX_LIMIT:
        raise ApiError(400, f"limit must be 1 to {_MAX_LIMIT}")
    return int(text)


def _moment(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00").replace(" ", "+"))
    except ValueError as error:
        raise ApiError(400, "startedAfter must be a date-time") from error
    if moment.tzinfo is None:
        raise ApiError(400, "startedAfter needs a time zone")
    return round(moment.timestamp() * 1000)
