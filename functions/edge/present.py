"""Results of use cases as answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sandbox_router.lifecycle.once import Reply
from sandbox_router.model.failure import TooLarge
from sandbox_router.model.sandbox import Sandbox, State
from sandbox_router.model.view import candidate_view, sandbox_view, timestamp
from sandbox_router.ports import Clock, Endpoint, Entry, Signed
from sandbox_router.routing.route import Route
from sandbox_router.session.transfers import Download, Upload

from .call import Answer
from .json import render

ANSWER_BYTES = 4 * 1024 * 1024


def begun(reply: Reply, place: str, wait: int | None) -> Answer:
    """The answer to a request that begins something. place: where that can be found then; wait: the
    seconds its client said.
    """
    headers: dict[str, str] = {}
    if reply.record_id is not None and reply.status in (201, 202):
        headers["Location"] = f"{place}/{reply.record_id}"
    if reply.retry_after is not None:
        headers["Retry-After"] = str(max(0, reply.retry_after))
    if reply.replayed:
        headers["Idempotent-Replayed"] = "true"
    if wait is not None and not (reply.replayed and reply.status == 202):
        headers["Preference-Applied"] = f"wait={wait}"
    return Answer(reply.status, reply.body, headers)


def shown(box: Sandbox, clock: Clock, status: int = 200) -> Answer:
    """The sandbox."""
    return Answer(status, sandbox_view(box, clock.now()))


def shown_with_kept(box: Sandbox, clock: Clock) -> Answer:
    """The sandbox after pause or resume, and what survived; 202 while it is on its way."""
    on_its_way = box.power_awaited or box.state in (State.PAUSING, State.RESUMING)
    view = {**sandbox_view(box, clock.now()), "kept": box.kept}
    return Answer(202 if on_its_way else 200, view)


def directory_view(entries: Sequence[Entry]) -> str:
    """Entries, finished; raises TooLarge for more than one answer can hold."""
    text = render({"data": [_entry_view(entry) for entry in entries]})
    if len(text.encode()) > ANSWER_BYTES:
        raise TooLarge("This directory has more entries than one answer can hold")
    return text


def _entry_view(entry: Entry) -> dict[str, Any]:
    return {
        "name": _text(entry.name),
        "path": _text(entry.path),
        "kind": entry.kind,
        "size": entry.size,
        "modified_at": timestamp(entry.modified_at),
    }


def _text(name: str) -> str:
    """A name JSON can carry: one that is no UTF-8 comes with replacement signs."""
    return name.encode("utf-8", "replace").decode()


def endpoint_view(endpoint: Endpoint) -> dict[str, Any]:
    """The preview URL, with the token in its headers: who asked for it may see it."""
    return {
        "url": endpoint.url,
        "headers": dict(endpoint.headers),
        "visibility": endpoint.visibility,
        "expires_at": timestamp(endpoint.expires_at),
    }


def download_view(found: Download) -> dict[str, Any]:
    """A signed request that reads a file: who asked for it may see its URL."""
    return {**_signed_view(found.request, found.expires_at), "size_bytes": found.size}


def upload_view(found: Upload) -> dict[str, Any]:
    """A signed request that takes a file, and the id to take it by."""
    return {"upload_id": found.id, **_signed_view(found.request, found.expires_at)}


def _signed_view(request: Signed, expires_at: int) -> dict[str, Any]:
    return {
        "url": request.url,
        "method": request.method,
        "headers": dict(request.headers),
        "expires_at": timestamp(expires_at),
    }


def route_view(route: Route) -> dict[str, Any]:
    """A dry run."""
    return {
        "candidates": [candidate_view(candidate) for candidate in route.candidates],
        "refused": [
            {"pool_id": pool.pool_id, "provider": pool.provider, "reasons": list(pool.reasons)}
            for pool in route.refused
        ],
    }
