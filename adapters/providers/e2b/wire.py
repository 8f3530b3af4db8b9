"""E2B's control plane as data: bodies written, answers read, errors judged. No I/O.

Facts: spec/openapi.yml of github.com/e2b-dev/infra at 54693ff (2026-08-22) and, where newer, the
official Python SDK e2b 2.63.0 (create v2 with Idempotency-Key, connect v2, the error codes).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import quote

from sandbox_router.model import failure as fail
from sandbox_router.model.failure import ProtocolBroken, Rejected, Unknown
from sandbox_router.model.secret import Secret
from sandbox_router.model.size import Shape
from sandbox_router.ports import Capture, Instance, InstanceState, Order

from ..answer import Answer, Rows, Verdicts
from . import declare

TOKEN, TRAFFIC, AT, VERSION = "token", "traffic", "domain", "version"
"""Names in an instance's `access`: agent token, port token, data domain, agent version."""

_VISIBLE = re.compile(r"[\x21-\x7e]{1,4096}")
_STATES: Mapping[str, InstanceState] = {"running": "running", "paused": "paused"}


def code_of(status: int, body: Mapping[str, Any]) -> str | None:
    """E2B's `error_code`, or ours where only the message tells two causes apart.

    The header `Should-Retry` is not read: it says whether asking again makes sense, not whether
    the first request had an effect (`true` comes with 5xx answers that may have).
    """
    code, message = body.get("error_code"), str(body.get("message", "")).lower()
    if status == 429 and "maximum number of concurrent" in message:
        return "concurrent_limit"
    if status == 403 and "policy" in f"{code} {message}":
        return "policy"
    if status == 503 and "cannot be snapshotted right now" in message:
        return "node_busy"
    if status == 400 and "sandboxes using it" in message:
        return "in_use"
    return code if isinstance(code, str) else None


_SANDBOXES: Rows = {
    (429, "concurrent_limit"): fail.Quota,
    (403, "policy"): fail.Policy,
    (None, "sandbox_capacity_unavailable"): fail.Capacity,
    (None, "sandbox_no_compatible_node"): fail.Capacity,
    (None, "sandbox_placement_timeout"): fail.Capacity,
}
CALLS = Verdicts(_SANDBOXES, code_of)
"""How answers about an instance that exists are judged; 404 is Gone."""

CREATES = Verdicts(
    {
        **_SANDBOXES,
        (404, None): Rejected,  # the template, not an instance
        (410, None): Rejected,
        (None, "sandbox_create_refused"): Rejected,
        # The vendor says "retry"; nothing says that no node was left with an instance.
        (None, "sandbox_create_failed"): Unknown,
        (None, "idempotency_in_progress"): Unknown,
        (None, "idempotency_outcome_unknown"): Unknown,
        # An earlier request under this identity was accepted with another body.
        (None, "idempotency_request_mismatch"): fail.Conflicted,
    },
    code_of,
)

RESTORES = Verdicts(
    {**CREATES.rows, (404, None): fail.CaptureGone, (410, None): fail.CaptureGone}, code_of
)
"""Of creates whose template is a snapshot."""

CAPTURES = Verdicts(
    {
        **_SANDBOXES,
        (503, "node_busy"): fail.Conflicted,  # refused before the sandbox was paused
        (400, "in_use"): fail.Conflicted,
        (None, "snapshot_filesystem_only_disabled"): fail.PoolUnsupported,
        (None, "snapshot_filesystem_only_unsupported_node"): fail.PoolUnsupported,
    },
    code_of,
)
LISTS = Verdicts({**_SANDBOXES, (404, None): ProtocolBroken}, code_of)
"""Of captures: an E2B that has no such list does not say that something is gone."""


def document(body: Mapping[str, Any]) -> bytes:
    """JSON with one form only: a repeat must be the same bytes or E2B reports a mismatch."""
    return json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


def create_body(order: Order) -> bytes:
    """The body of `POST /v2/sandboxes`; ports are public at E2B unless closed here."""
    return document(
        {
            "templateID": order.reference,
            "timeout": order.lifetime_seconds,
            "metadata": dict(order.tags),
            "envVars": {name: value.reveal() for name, value in order.cargo.env.items()},
            "network": {"allowPublicTraffic": False},
        }
    )


def filter_query(tags: Mapping[str, str]) -> str:
    """The list query for instances with these tags.

    E2B decodes the filter as a whole and its parts once more (infra, packages/api/internal; the
    SDK's paginator encodes as often): each part is quoted twice and the whole once.
    """
    pairs = "&".join(f"{_twice(key)}={_twice(value)}" for key, value in sorted(tags.items()))
    return f"metadata={quote(pairs, safe='')}" if pairs else ""


def _twice(text: str) -> str:
    return quote(quote(text, safe=""), safe="")


def created(body: Mapping[str, Any], tags: Mapping[str, str]) -> Instance:
    """The instance in the answer of create or connect; that answer does not repeat its tags."""
    return Instance(
        declare.instance_id(body.get("sandboxID")), "running", tags, access=_access(body)
    )


def described(body: Mapping[str, Any]) -> Instance:
    """The instance in a detail or a list entry.

    A state this adapter does not know is `starting`: it is there, and nobody knows it is ready.
    """
    return Instance(
        id=declare.instance_id(body.get("sandboxID")),
        state=_STATES.get(_text(body.get("state")), "starting"),
        tags=_tags(body.get("metadata")),
        shape=_shape(body),
        created_at=_moment(body.get("startedAt")),
        ends_at=_moment(body.get("endAt")),
        access=_access(body),
    )


def entries(answer: Answer) -> list[dict[str, Any]]:
    """What a list shows; raises ProtocolBroken."""
    found = answer.array()
    if all(isinstance(entry, dict) for entry in found):
        return found
    raise ProtocolBroken


def following(answer: Answer, cursor: str | None) -> str | None:
    """The cursor of the page after the one that `cursor` was for; raises ProtocolBroken."""
    found = answer.headers.get("x-next-token") or None
    if found is not None and (found == cursor or len(found) > 4096):
        raise ProtocolBroken  # it would never end
    return found


def captured(body: Mapping[str, Any]) -> Capture:
    """The capture in an answer or a list entry: shown only once it is ready.

    E2B puts the team before the name, and may put a tag behind it.
    """
    names = body.get("names")
    if not isinstance(names, list):
        raise ProtocolBroken
    name = _text(names[0]).rpartition("/")[2].partition(":")[0] if names else None
    return Capture(declare.capture_id(body.get("snapshotID")), "ready", name)


def _access(body: Mapping[str, Any]) -> Mapping[str, Secret]:
    found = {
        TOKEN: body.get("envdAccessToken"),
        TRAFFIC: body.get("trafficAccessToken"),
        AT: body.get("domain") or declare.DOMAIN,
        VERSION: body.get("envdVersion"),
    }
    present = {name: _text(value) for name, value in found.items() if value is not None}
    declare.domain(present[AT])
    if not all(_VISIBLE.fullmatch(value) for value in present.values()):
        raise ProtocolBroken
    return {name: Secret(value) for name, value in present.items()}


def _tags(value: Any) -> Mapping[str, str]:
    if value is None:
        return {}
    if isinstance(value, dict) and all(isinstance(v, str) for v in value.values()):
        return value
    raise ProtocolBroken


def _shape(body: Mapping[str, Any]) -> Shape:
    cpu, memory, disk = (body.get(name) for name in ("cpuCount", "memoryMB", "diskSizeMB"))
    if isinstance(cpu, int) and isinstance(memory, int) and isinstance(disk, int):
        return Shape(cpu * 1000, memory, disk)
    raise ProtocolBroken


def _moment(value: Any) -> int:
    try:
        return round(datetime.fromisoformat(_text(value)).timestamp() * 1000)
    except (ValueError, OverflowError):
        pass
    raise ProtocolBroken


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise ProtocolBroken
