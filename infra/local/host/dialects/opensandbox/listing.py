"""OpenSandbox's list: filters, order, pages. Facts: api/lifecycle.py of server 1.1.1."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any
from urllib.parse import parse_qsl

from starlette.datastructures import QueryParams

from infra.local.host.dialects.opensandbox import views
from infra.local.host.dialects.opensandbox.errors import ApiError, Unprocessable
from infra.local.host.instance import Instance, State, now_ms

_MAX_SIZE = 200


def answer(
    instances: Iterable[Instance], params: QueryParams, lag_seconds: float = 0
) -> dict[str, Any]:
    """Return the page that the parameters ask for, newest first."""
    states = {state.lower() for state in params.getlist("state")}
    metadata = _metadata(params.get("metadata"))
    found = [
        one
        for one in instances
        if _shown(one, lag_seconds)
        and (not states or views.state_of(one).lower() in states)
        and metadata.items() <= one.request.metadata.items()
    ]
    found.sort(key=lambda one: (one.created_ms, one.id), reverse=True)
    return page_of([views.sandbox(one) for one in found], params)


def page_of(found: list[dict[str, Any]], params: QueryParams) -> dict[str, Any]:
    """Return the page of these entries that the parameters ask for."""
    page, size = _number(params, "page", 1), _number(params, "pageSize", 20, _MAX_SIZE)
    pages = math.ceil(len(found) / size)
    return {
        "items": found[(page - 1) * size : page * size],
        "pagination": {
            "page": page,
            "pageSize": size,
            "totalItems": len(found),
            "totalPages": pages,
            "hasNextPage": page < pages,
        },
    }


def _shown(instance: Instance, lag_seconds: float) -> bool:
    lag = lag_seconds * 1000
    if instance.state is State.GONE and instance.gone_ms is not None:
        return lag > 0 and now_ms() - instance.gone_ms < lag
    return views.visible(instance) and now_ms() - instance.created_ms >= lag


def _metadata(text: str | None) -> dict[str, str]:
    if not text:
        return {}
    try:
        return dict(parse_qsl(text, keep_blank_values=True, strict_parsing=True))
    except ValueError as error:
        raise ApiError(
            400, "INVALID_METADATA_FORMAT", f"Invalid metadata format: {error}"
        ) from None


def _number(params: QueryParams, name: str, default: int, highest: int = 10**9) -> int:
    text = params.get(name, str(default))
    if not text.isdecimal() or not 1 <= int(text[:12]) <= highest:
        raise Unprocessable(f"{name} must be 1 to {highest}.")
    return int(text)
