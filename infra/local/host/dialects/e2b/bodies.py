"""Reading E2B's request bodies; what this host cannot do is refused, never dropped.

Facts: openapi.yml (NewSandbox, ConnectSandbox, ...) and the newer shapes of the SDK 2.63.0.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request

from infra.local.host.dialects.e2b.errors import ApiError
from infra.local.host.instance import OnEnd
from infra.local.host.instance import Request as Wanted

MAX_TIMEOUT = 24 * 3600
_EVERYWHERE = frozenset({"0.0.0.0/0", "::/0"})
_UNSUPPORTED_NETWORK = ("allowOut", "egressProxy", "maskRequestHost", "rules")
_UNSUPPORTED = ("mcp", "iam", "volumeMounts")


async def json_body(request: Request, *, required: bool = True) -> dict[str, Any]:
    """Return the request's JSON object."""
    data = await request.body()
    if not data and not required:
        return {}
    try:
        body = json.loads(data)
    except ValueError as error:
        raise ApiError(400, "Error when parsing request") from error
    if not isinstance(body, dict):
        raise ApiError(400, "Error when parsing request: an object is expected")
    return body


def timeout_of(body: Mapping[str, Any], default: int | None) -> int:
    """Return the time to live that a body asks for, in seconds."""
    value = body.get("timeout", default)
    if value is None or isinstance(value, bool) or not isinstance(value, int):
        raise ApiError(400, "timeout must be an integer number of seconds")
    if value < 0:
        raise ApiError(400, "timeout must not be negative")
    if value > MAX_TIMEOUT:
        raise ApiError(400, f"Timeout cannot be greater than {MAX_TIMEOUT // 3600} hours")
    return value


def boolean_of(body: Mapping[str, Any], name: str, default: bool) -> bool:
    """Return a boolean field."""
    value = body.get(name, default)
    if not isinstance(value, bool):
        raise ApiError(400, f"{name} must be a boolean")
    return value


def _texts(body: Mapping[str, Any], name: str) -> dict[str, str]:
    value = body.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
        raise ApiError(400, f"{name} must be an object of strings")
    return dict(value)


def _environment(body: Mapping[str, Any]) -> dict[str, str]:
    found = _texts(body, "envVars")
    for name, value in found.items():
        if not name or "=" in name or "\0" in name + value:
            raise ApiError(400, "envVars holds a name or value that no environment can hold")
    return found


def _network(body: Mapping[str, Any], *, can_cut: bool) -> tuple[bool, bool]:
    """Return whether the network is on, and whether ports are open to everyone."""
    network = body.get("network") or {}
    if not isinstance(network, dict):
        raise ApiError(400, "network must be an object")
    for name in _UNSUPPORTED_NETWORK:
        if network.get(name):
            raise ApiError(400, f"network.{name} is not supported by this host")
    denied = network.get("denyOut") or []
    if not isinstance(denied, list) or set(denied) - _EVERYWHERE:
        raise ApiError(400, "network.denyOut is supported for 0.0.0.0/0 and ::/0 only")
    on = boolean_of(body, "allow_internet_access", True) and not denied
    if not on and not can_cut:
        raise ApiError(400, "this host's isolation cannot cut the network of a sandbox")
    return on, boolean_of(network, "allowPublicTraffic", True)


def _auto_resume(body: Mapping[str, Any]) -> bool:
    value = body.get("autoResume") or {}
    if not isinstance(value, dict):
        raise ApiError(400, "autoResume must be an object")
    return boolean_of(value, "enabled", False)


def new_sandbox(
    body: Mapping[str, Any], account: str, *, default_timeout: int, secured: bool, can_cut: bool
) -> Wanted:
    """Return what a create asks for, in the engine's words."""
    template = body.get("templateID")
    if not isinstance(template, str) or not template:
        raise ApiError(400, "templateID is required")
    for name in _UNSUPPORTED:
        if body.get(name):
            raise ApiError(400, f"{name} is not supported by this host")
    on, public = _network(body, can_cut=can_cut)
    pause = boolean_of(body, "autoPause", False)
    auto_resume, memory = _auto_resume(body), boolean_of(body, "autoPauseMemory", True)
    if auto_resume and not memory:
        raise ApiError(400, "autoPauseMemory=false cannot be combined with autoResume")
    timeout = timeout_of(body, default_timeout)
    return Wanted(
        account=account,
        dialect="e2b",
        template=template,
        lifetime_seconds=timeout,
        metadata=_texts(body, "metadata"),
        env=_environment(body),
        on_end=OnEnd.PAUSE if pause else OnEnd.DESTROY,
        keep_memory=memory,
        network=on,
        extra={
            "secured": secured,
            "public": public,
            "timeout": timeout,
            "auto_resume": auto_resume,
            "internet": body.get("allow_internet_access"),
            "network": body.get("network"),
        },
    )
