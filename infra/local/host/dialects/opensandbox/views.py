"""Instances in OpenSandbox's words, as the Docker runtime says them.

Facts: sandbox-lifecycle.yml (Sandbox, CreateSandboxResponse), services/docker of 1.1.1.
"""

from __future__ import annotations

from typing import Any

from infra.local.host.captures import Capture, CaptureState
from infra.local.host.dialects.opensandbox.bodies import IDLE
from infra.local.host.instance import Instance, State
from infra.local.host.moments import rfc3339

_STATES = {
    State.STARTING: ("Pending", "CONTAINER_STARTING", "Sandbox container is starting."),
    State.PAUSED: ("Paused", "CONTAINER_PAUSED", "Sandbox container is paused."),
}
_CAPTURES = {
    CaptureState.CREATING: ("Creating", "snapshot_accepted", "Snapshot creation accepted."),
    CaptureState.READY: ("Ready", "snapshot_runtime_ready", "Snapshot image created."),
    CaptureState.FAILED: ("Failed", "snapshot_runtime_failed", "The container is gone."),
    CaptureState.DELETING: ("Deleting", "snapshot_delete_requested", "Deletion requested."),
}
_RUNNING = ("Running", "CONTAINER_RUNNING", "Sandbox container is running.")


def visible(instance: Instance) -> bool:
    """Tell whether the server would show it: from its container's start to its removal."""
    return instance.alive or instance.state is State.STARTING


def state_of(instance: Instance) -> str:
    """Return its state's name."""
    return _STATES.get(instance.state, _RUNNING)[0]


def created(instance: Instance) -> dict[str, Any]:
    """Return the answer to create, which says nothing of the image."""
    state, reason, message = _STATES.get(instance.state, _RUNNING)
    moment = rfc3339(instance.created_ms)
    answer: dict[str, Any] = {
        "id": instance.id,
        "status": {
            "state": state,
            "reason": reason,
            "message": message,
            "lastTransitionAt": moment,
        },
        "metadata": instance.request.metadata,
        "createdAt": moment,
        "entrypoint": IDLE,
    }
    if instance.ends_ms is not None:
        answer["expiresAt"] = rfc3339(instance.ends_ms)
    return answer


def sandbox(instance: Instance) -> dict[str, Any]:
    """Return it as get and list show it; the runtime does not tell the size."""
    request = instance.request
    made_of = {"image": {"uri": request.template}}
    return created(instance) | ({"snapshotId": request.capture} if request.capture else made_of)


def snapshot(capture: Capture) -> dict[str, Any]:
    """Return a snapshot as every operation shows it."""
    state, reason, message = _CAPTURES[capture.state]
    answer: dict[str, Any] = {
        "id": capture.id,
        "sandboxId": capture.source,
        "status": {
            "state": state,
            "reason": reason,
            "message": message,
            "lastTransitionAt": rfc3339(capture.ready_ms or capture.created_ms),
        },
        "createdAt": rfc3339(capture.created_ms),
    }
    return answer | ({} if capture.name is None else {"name": capture.name})
