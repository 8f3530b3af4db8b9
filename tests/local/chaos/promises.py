"""The same promises as everywhere: what these clients saw, for the checker of histories."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tests.local.chaos.clients import Event
from tests.sim import history

TENANT = "default"
REUSED = "idempotency_key_reused"


def broken(
    seen: Iterable[Event],
    boxes: Mapping[str, Mapping[str, Any]],
    alive: Iterable[Mapping[str, Any]],
) -> list[str]:
    """The first promise that was not kept, with its trace."""
    told = sorted(_told(seen), key=lambda event: event.t)
    told += [
        history.Event("seen", "get", 0, sandbox=n, instance=box["instance_id"], state=box["state"])
        for n, box in boxes.items()
    ]
    told += [
        history.Event("alive", "get", 0, sandbox=name(one), instance=one["id"]) for one in alive
    ]
    try:
        history.check(told)
    except history.Broken as promise:
        return [str(promise)]
    return []


def _told(seen: Iterable[Event]) -> Iterator[history.Event]:
    for call, event in enumerate(seen, 1):
        if event.op == "lie":
            continue
        yield history.Event("invoke", event.op, event.began, call, TENANT, event.key, event.sent)
        reused = event.code == REUSED
        yield history.Event(
            _kind(event.status),
            event.op,
            event.ended,
            call,
            TENANT,
            status=event.status,
            sandbox=event.sandbox,
            instance=event.instance,
            state="reused" if reused else None,
            answer=event.body,
        )


def _kind(status: int) -> history.Kind:
    if status == 0 or status >= 500:
        return "info"
    return "ok" if status < 300 else "fail"


def name(instance: Mapping[str, Any]) -> str:
    """The sandbox an instance is tagged with."""
    return str(instance["metadata"].get("constal-sandbox-id", ""))
