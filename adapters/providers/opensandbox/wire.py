"""OpenSandbox's lifecycle API as data: bodies written, answers read, errors judged. No I/O.

Facts: specs/sandbox-lifecycle.yml of github.com/opensandbox-group/OpenSandbox at 3bb6fad, the
server opensandbox-server 1.1.1, and runs of that server on Docker's API (podman).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from sandbox_router.model import failure as fail
from sandbox_router.model.failure import ProtocolBroken, Rejected
from sandbox_router.ports import Capture, CaptureState, Instance, InstanceState, Order

from ..answer import Rows, Verdicts
from . import declare

_VISIBLE = re.compile(r"[\x21-\x7e]{1,4096}")
_STATES: Mapping[str, InstanceState] = {
    "Pending": "starting",
    "Resuming": "starting",
    "Running": "running",
    "Pausing": "pausing",
    "Paused": "paused",
    # Nothing runs in these any more; what is left of them is there until somebody deletes it.
    "Stopping": "failed",
    "Terminated": "failed",
    "Failed": "failed",
}

_CAPTURES: Mapping[str, CaptureState] = {
    "Creating": "creating",
    "Ready": "ready",
    # Nothing can be made of these any more; what is left is there until somebody deletes it.
    "Failed": "failed",
    "Deleting": "failed",
}
T = TypeVar("T")


def code_of(status: int, body: Mapping[str, Any]) -> str | None:
    """The server's or execd's code, or ours for what several runtimes say each their way."""
    code = body.get("code")
    text = code if isinstance(code, str) else ""
    if text.endswith("SANDBOX_NOT_FOUND"):
        return "SANDBOX_NOT_FOUND"
    if status == 403 and "policy" in f"{text} {body.get('message', '')}".lower():
        return "policy"
    return text or None


_SANDBOXES: Rows = {
    (403, "policy"): fail.Policy,
    (None, "KUBERNETES::QUOTA_EXCEEDED"): fail.Quota,
    (None, "KUBERNETES::POOL_CAPACITY_EXHAUSTED"): fail.Capacity,
    # The server has no engine, or knows no tenants: it got no further than that.
    (503, "DOCKER::INITIALIZATION_ERROR"): fail.Outage,
    (503, "KUBERNETES::INITIALIZATION_ERROR"): fail.Outage,
    (503, "TENANT_PROVIDER_UNAVAILABLE"): fail.Outage,
    (501, None): fail.PoolUnsupported,
    (None, "SANDBOX::API_NOT_SUPPORTED"): fail.PoolUnsupported,
}
CALLS = Verdicts(_SANDBOXES, code_of)
"""How answers about an instance that exists are judged; 404 is Gone."""

CAPTURES = Verdicts(
    {**_SANDBOXES, (None, "SNAPSHOT::UNSUPPORTED_RUNTIME"): fail.PoolUnsupported}, code_of
)
CAPTURE_CALLS = Verdicts(
    # A server without snapshots does not say that one is gone.
    {**_SANDBOXES, (404, None): ProtocolBroken, (404, "SNAPSHOT::NOT_FOUND"): fail.Gone},
    code_of,
)
"""How answers about a capture that exists are judged; 409 says that it cannot go yet."""

CREATES = Verdicts(
    {
        **_SANDBOXES,
        (404, None): Rejected,  # a snapshot, a pool or a template, not an instance
        (410, None): Rejected,
        (404, "SNAPSHOT::NOT_FOUND"): fail.CaptureGone,
        (409, "SNAPSHOT::INVALID_RESTORE_CONFIG"): Rejected,
        # The image is pulled before anything is made (docker_service.py).
        (500, "DOCKER::SANDBOX_IMAGE_PULL_FAILED"): Rejected,
    },
    code_of,
)
"""Every other 5xx is unknown: KUBERNETES::POD_READY_TIMEOUT too, whose pod may come yet."""


def document(body: Mapping[str, Any] | list[dict[str, Any]]) -> bytes:
    """JSON with one form only."""
    return json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


def create_body(order: Order, least_seconds: int) -> bytes:
    """The body of `POST /v1/sandboxes`; raises Rejected for a life the server would not take.

    An image, or an entrypoint of its own, sent with a snapshot would not be the snapshot's.
    """
    if order.lifetime_seconds < least_seconds:
        raise Rejected(f"OpenSandbox takes no life of less than {least_seconds} seconds")
    shape = order.shape
    image = {"image": {"uri": order.reference}, "entrypoint": list(declare.ENTRYPOINT)}
    return document(
        {
            **({"snapshotId": order.reference} if order.from_capture else image),
            "timeout": order.lifetime_seconds,
            "resourceLimits": {"cpu": f"{shape.milli_vcpu}m", "memory": f"{shape.memory_mib}Mi"},
            "env": {name: value.reveal() for name, value in order.cargo.env.items()},
            "metadata": declare.held(order.tags),
        }
    )


def renewal(until: float) -> bytes:
    """The body that moves the end to this moment, in seconds since the epoch."""
    return document({"expiresAt": datetime.fromtimestamp(until, UTC).isoformat()})


def list_query(tags: Mapping[str, str], page: int, size: int) -> str:
    """The query for one page of instances with these tags: a query string inside a parameter."""
    query = f"page={page}&pageSize={size}"
    pairs = urlencode(sorted(tags.items()), quote_via=quote, safe="")
    return f"metadata={quote(pairs, safe='')}&{query}" if pairs else query


def described(body: Any) -> Instance:
    """The instance in an answer; the server does not tell its shape.

    A state this adapter does not know is `starting`: it is there, and nobody knows it is ready.
    """
    if not isinstance(body, dict) or not isinstance(body.get("status"), dict):
        raise ProtocolBroken
    ends = body.get("expiresAt")
    return Instance(
        id=declare.safe_id(body.get("id")),
        state=_STATES.get(_text(body["status"].get("state")), "starting"),
        tags=_tags(body.get("metadata")),
        created_at=_moment(body.get("createdAt")),
        ends_at=None if ends is None else _moment(ends),
    )


def captured(body: Any) -> Capture:
    """The capture in an answer. One in a state this adapter does not know is not ready yet."""
    if not isinstance(body, dict) or not isinstance(body.get("status"), dict):
        raise ProtocolBroken
    name = body.get("name")
    return Capture(
        id=declare.safe_id(body.get("id")),
        state=_CAPTURES.get(_text(body["status"].get("state")), "creating"),
        name=None if name is None else _text(name),
        created_at=_moment(body.get("createdAt")),
    )


def taken(body: Any) -> tuple[Capture, Any]:
    """The capture in an answer, and the id of the instance it is of."""
    return captured(body), body.get("sandboxId")


def page(
    body: Mapping[str, Any], number: int, read: Callable[[Any], T]
) -> tuple[tuple[T, ...], bool]:
    """What a page shows, and whether there are more pages."""
    items, about = body.get("items"), body.get("pagination")
    if not isinstance(items, list) or not isinstance(about, dict):
        raise ProtocolBroken
    more = about.get("hasNextPage")
    if about.get("page") != number or not isinstance(more, bool) or (more and not items):
        raise ProtocolBroken
    return tuple(map(read, items)), more


def endpoint(body: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    """A port's address, without its scheme, and the headers it wants."""
    address, headers = body.get("endpoint"), body.get("headers") or {}
    if not isinstance(headers, dict):
        raise ProtocolBroken
    texts = [address, *headers, *headers.values()]
    if not all(isinstance(text, str) and _VISIBLE.fullmatch(text) for text in texts):
        raise ProtocolBroken
    return _text(address), headers


def _tags(value: Any) -> Mapping[str, str]:
    if value is None:
        return {}
    if isinstance(value, dict) and all(isinstance(v, str) for v in value.values()):
        return value
    raise ProtocolBroken


def _moment(value: Any) -> int:
    try:
        moment = datetime.fromisoformat(_text(value))
        return round(moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() * 1000)
    except (ValueError, OverflowError):
        pass
    raise ProtocolBroken


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise ProtocolBroken
