"""Instances in E2B's words. Facts: openapi.yml (Sandbox, SandboxDetail, ListedSandbox)."""

from __future__ import annotations

import hashlib
import hmac
import time
from typing import Any

from infra.local.host.instance import Instance, OnEnd, State
from infra.local.host.moments import rfc3339

# 0.5.7: octet-stream uploads and stdin that can be closed, no file metadata, no new watch forms.
ENVD_VERSION = "0.5.7"
_CLIENT_ID = "6532622b"


class Tokens:
    """Access tokens of sandboxes, derived from a secret of this host's run."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def _make(self, kind: str, instance: Instance) -> str:
        text = f"{kind}:{instance.id}".encode()
        return hmac.new(self._secret, text, hashlib.sha256).hexdigest()

    def envd(self, instance: Instance) -> str | None:
        """Return the token for calls into the sandbox, if it is secured."""
        return self._make("envd", instance) if instance.request.extra["secured"] else None

    def traffic(self, instance: Instance) -> str | None:
        """Return the token for its ports, if they are not open to everyone."""
        return None if instance.request.extra["public"] else self._make("traffic", instance)


def visible(instance: Instance) -> bool:
    """Tell whether E2B would show it: not while it starts, not once it is gone."""
    return instance.alive


def created(instance: Instance, tokens: Tokens) -> dict[str, Any]:
    """Return the answer to create and connect."""
    answer: dict[str, Any] = {
        "templateID": instance.request.template,
        "alias": instance.request.template,
        "sandboxID": instance.id,
        "clientID": _CLIENT_ID,
        "envdVersion": ENVD_VERSION,
        "trafficAccessToken": tokens.traffic(instance),
        "domain": None,
    }
    token = tokens.envd(instance)
    return answer | ({} if token is None else {"envdAccessToken": token})


def listed(instance: Instance) -> dict[str, Any]:
    """Return its entry in a list."""
    return {
        "templateID": instance.request.template,
        "alias": instance.request.template,
        "sandboxID": instance.id,
        "clientID": _CLIENT_ID,
        "startedAt": rfc3339(instance.created_ms),
        "endAt": rfc3339(instance.ends_ms or 0),
        "envdVersion": ENVD_VERSION,
        "cpuCount": instance.template.vcpu,
        "memoryMB": instance.template.memory_mib,
        "diskSizeMB": instance.template.disk_mib,
        "metadata": instance.request.metadata,
        "state": "paused" if instance.state is State.PAUSED else "running",
    }


def detail(instance: Instance, tokens: Tokens) -> dict[str, Any]:
    """Return its details."""
    extra = instance.request.extra
    answer = listed(instance) | {
        "domain": None,
        "allowInternetAccess": extra["internet"],
        "network": extra["network"] or {},
        "lifecycle": {
            "autoResume": extra["auto_resume"],
            "onTimeout": "pause" if instance.request.on_end is OnEnd.PAUSE else "kill",
        },
    }
    token = tokens.envd(instance)
    return answer | ({} if token is None else {"envdAccessToken": token})


def metric(instance: Instance, used_cpu_pct: float, memory: int, disk: int) -> dict[str, Any]:
    """Return one measurement."""
    now = time.time()
    return {
        "timestamp": rfc3339(round(now * 1000)),
        "timestampUnix": int(now),
        "cpuCount": instance.template.vcpu,
        "cpuUsedPct": round(used_cpu_pct, 2),
        "memUsed": memory,
        "memTotal": instance.template.memory_mib * 1024 * 1024,
        "memCache": 0,
        "diskUsed": disk,
        "diskTotal": instance.template.disk_mib * 1024 * 1024,
    }
