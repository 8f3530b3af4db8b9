"""Reading OpenSandbox's request bodies; what this host cannot do is refused, never dropped.

Facts: sandbox-lifecycle.yml and opensandbox-server 1.1.1 (schema.py, services/validators.py,
services/docker, services/helpers.py).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from starlette.requests import Request

from infra.local.host.dialects.opensandbox.errors import ApiError, Unprocessable, invalid
from infra.local.host.instance import Request as Wanted
from infra.local.host.instance import Template

MIN_TIMEOUT = 60
IDLE = ["tail", "-f", "/dev/null"]
_IMAGES = re.compile(
    r"(?:docker\.io/)?(?:library/)?(?:python|debian|ubuntu)(?::[\w][\w.-]{0,127})?", re.ASCII
)
"""Images this machine's own system stands in for; it pulls nothing."""
_RESERVED = "opensandbox.io/"
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_DOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_MEMORY = re.compile(r"(\d+)\s*([kmgt]i?|)", re.IGNORECASE)
_UNITS = {
    "": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12,
    "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40,
}  # fmt: skip
_UNSUPPORTED = ("templateId", "volumes", "credentialProxy", "lifecycle", "extensions")


async def json_body(request: Request) -> dict[str, Any]:
    """Return the request's JSON object."""
    try:
        body = json.loads(await request.body())
    except ValueError as error:
        raise Unprocessable("The body is not JSON.") from error
    if not isinstance(body, dict):
        raise Unprocessable("The body must be an object.")
    return body


def new_sandbox(body: Mapping[str, Any], account: str, disk_mib: int) -> Wanted:
    """Return what a create asks for, in the engine's words; `disk_mib` is what each gets here."""
    for name in _UNSUPPORTED:
        if body.get(name):
            raise invalid(f"{name} is not supported by this host.")
    if body.get("networkPolicy"):
        raise invalid("egress.image must be configured when networkPolicy is provided.")
    if body.get("secureAccess"):
        raise invalid("secureAccess is supported for Kubernetes ingress gateway mode only.")
    platform = body.get("platform")
    if platform and platform.get("os") != "linux":
        raise invalid("Only the linux platform is supported.")
    snapshot = _snapshot(body)
    entrypoint = body.get("entrypoint") or (IDLE if snapshot else None)
    if entrypoint != IDLE:
        # Its end would be the sandbox's end, which this host does not play.
        raise invalid(f"This host runs no entrypoint but {IDLE}.")
    metadata = _texts(body, "metadata")
    check_labels(metadata)
    timeout = _timeout(body)
    return Wanted(
        account=account,
        dialect="opensandbox",
        template=snapshot or _image(body),
        lifetime_seconds=timeout,
        metadata=metadata,
        env=_environment(body),
        shape=_shape(body, disk_mib),
        ends_paused=True,
        capture=snapshot,
        extra={"commands": {}},
    )


def pulled(image: str) -> bool:
    """Tell whether an image is among those this machine stands in for."""
    return _IMAGES.fullmatch(image) is not None


def check_labels(labels: Mapping[str, str]) -> None:
    """Raise the server's error for what is no Kubernetes label."""
    for key, value in labels.items():
        if key.startswith(_RESERVED):
            raise _bad_label(f"Metadata key '{key}' uses the reserved prefix '{_RESERVED}'.")
        prefix, slash, name = key.rpartition("/")
        fits = len(name) <= 63 and _NAME.fullmatch(name)
        if slash and (len(prefix) > 253 or not _DOMAIN.fullmatch(prefix)):
            fits = False
        if not fits:
            raise _bad_label(f"Metadata key '{key}' is invalid.")
        if value and (len(value) > 63 or not _NAME.fullmatch(value)):
            raise _bad_label(f"Metadata value '{value}' is invalid: must be 63 characters or less.")


def _bad_label(message: str) -> ApiError:
    return ApiError(400, "SANDBOX::INVALID_METADATA_LABEL", message)


def future(body: Mapping[str, Any]) -> datetime:
    """Return the new end that a renewal asks for; a moment without a zone is UTC."""
    try:
        moment = datetime.fromisoformat(str(body.get("expiresAt")).replace("Z", "+00:00"))
    except ValueError as error:
        raise Unprocessable("expiresAt must be a date-time.") from error
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    if moment <= datetime.now(UTC):
        text = "New expiration time must be in the future."
        raise ApiError(400, "DOCKER::INVALID_EXPIRATION", text)
    return moment


def _snapshot(body: Mapping[str, Any]) -> str | None:
    """Return the snapshot that a create is to be made of, instead of an image."""
    value = body.get("snapshotId")
    if value is not None and not isinstance(value, str):
        raise Unprocessable("snapshotId must be a string.")
    if bool(value and value.strip()) == bool(body.get("image")):
        raise Unprocessable("Exactly one of image or snapshotId must be provided.")
    return value.strip() if value else None


def name_of(body: Mapping[str, Any]) -> str | None:
    """Return the name of a new snapshot."""
    value = body.get("name")
    if value is not None and (not isinstance(value, str) or not value):
        raise Unprocessable("name must be a string of at least one character.")
    return value


def _image(body: Mapping[str, Any]) -> str:
    image = body.get("image")
    uri = image.get("uri") if isinstance(image, dict) else None
    if not isinstance(uri, str) or not uri.strip():
        raise Unprocessable("image.uri is required.")
    return uri


def _timeout(body: Mapping[str, Any]) -> int | None:
    value = body.get("timeout")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < MIN_TIMEOUT:
        raise Unprocessable(f"timeout must be at least {MIN_TIMEOUT}.")
    return value


def _texts(body: Mapping[str, Any], name: str) -> dict[str, str]:
    value = body.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
        raise Unprocessable(f"{name} must be an object of strings.")
    return dict(value)


def _environment(body: Mapping[str, Any]) -> dict[str, str]:
    found = _texts(body, "env")
    if any(not name or "=" in name or "\0" in name + value for name, value in found.items()):
        raise invalid("env holds a name or value that no environment can hold.")
    return found


def _shape(body: Mapping[str, Any], disk_mib: int) -> Template:
    limits = _texts(body, "resourceLimits")
    for name in set(limits) - {"cpu", "memory"}:
        raise invalid(f"Invalid resourceLimits.{name}: not supported by this host.")
    cpu, memory = _cpus(limits.get("cpu", "1")), _bytes(limits.get("memory", "512Mi"))
    return Template(max(1, math.ceil(cpu)), max(1, memory // 2**20), disk_mib)


def _cpus(text: str) -> float:
    try:
        value = float(text[:-1]) / 1000 if text.endswith("m") else float(text)
    except ValueError:
        value = 0.0
    if not math.isfinite(value) or value <= 0:
        raise invalid(f"Invalid resourceLimits.cpu: {text!r}; must resolve to a positive limit.")
    return value


def _bytes(text: str) -> int:
    match = _MEMORY.fullmatch(text)
    value = int(match[1]) * _UNITS[match[2].lower()] if match else 0
    if value <= 0:
        raise invalid(f"Invalid resourceLimits.memory: {text!r}; must resolve to a positive limit.")
    return value
