"""What clients saw, and whether a router that keeps its promises could have answered so: I1-I6.

Pure, from client-visible events alone, so that one checker serves the simulation, a router on this
machine and a deployed one. An `invoke` has at most one end: `ok` (answered), `fail` (refused for
certain) or `info` (nobody knows: the client died, the answer was lost), which stays open for ever.
In the end an observer may add what it saw when all was quiet: `seen` for a sandbox's final record,
`alive` for each instance that still runs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["invoke", "ok", "fail", "info", "seen", "alive"]
BEGIN = ("create", "snapshot")
"""What begins a record, once per key."""
LAST = 12
"""Events of a trace that tell a failure."""


@dataclass(frozen=True)
class Event:
    """One line of a history. `call` joins an invoke with its end; `body` and `answer` are digests
    or texts of the request and of the whole answer; `instance` as the answer named it."""

    kind: Kind
    op: str
    t: float
    call: int = 0
    tenant: str = ""
    key: str | None = None
    body: str = ""
    status: int = 0
    sandbox: str | None = None
    instance: str | None = None
    state: str | None = None
    answer: str = ""


class Broken(AssertionError):
    """A promise was not kept; the message has the trace of those it was made to."""


def check(history: Sequence[Event]) -> None:
    """Raise Broken at the first broken promise."""
    for fault, about in _faults(history):
        calls = {e.call for e in history if about & {e.sandbox, e.key} and e.call}
        trace = [e for e in history if e.call in calls or about & {e.sandbox}]
        raise Broken("\n".join([fault, *map(str, trace[-LAST:])]))


Fault = tuple[str, set[object]]


def _faults(history: Sequence[Event]) -> Iterator[Fault]:
    invoked = {e.call: e for e in history if e.kind == "invoke"}
    keyed: dict[tuple[str, str], list[tuple[Event, Event]]] = defaultdict(list)
    for event in history:
        begun = invoked.get(event.call)
        if event.kind in ("ok", "fail") and event.op in BEGIN and begun and begun.key:
            keyed[begun.tenant, begun.key].append((begun, event))
    final = {e.sandbox: e.state for e in history if e.kind == "seen"}
    for (tenant, key), answers in keyed.items():
        yield from _one_key(tenant, key, answers, final)
        sent = {e.body for e in invoked.values() if (e.tenant, e.key) == (tenant, key)}
        if len(sent) == 1 and any(
            end.status == 422 and end.state == "reused" for _, end in answers
        ):
            yield f"I4: {key} was called reused, and only one body was ever sent", {key}
    yield from _one_instance(history)
    yield from _one_tenant(history, invoked)
    yield from _acknowledged(history, final)
    yield from _at_the_end(history, invoked, keyed)


def _one_key(
    tenant: str, key: str, answers: list[tuple[Event, Event]], final: dict[str | None, str | None]
) -> Iterator[Fault]:
    """I1, I2, I4: one settled answer; an earlier sandbox is one that failed and freed the key."""
    good = [(begun, end) for begun, end in answers if end.kind == "ok"]
    settled = [(begun, end) for begun, end in good if end.status == 201]
    texts = sorted({end.answer for _, end in settled})
    if len(texts) > 1:
        first, second = texts[:2]
        at = next((i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), 0)
        parts = f"{first[max(at - 40, 0) : at + 40]!r} and {second[max(at - 40, 0) : at + 40]!r}"
        yield f"I1, I2: two settled answers for {key} of {tenant}: {parts}", {key}
    served = {end.sandbox for _, end in settled}
    for other in {end.sandbox for _, end in good} - served if served else ():
        if final.get(other, "failed") != "failed":
            yield f"I1: {key} has the sandboxes {other} and {served}", {key}
    for _, end in settled:
        bodies = {begun.body for begun, each in good if each.sandbox == end.sandbox}
        if len(bodies) > 1:
            yield f"I4: two bodies got one sandbox under {key}", {key}


def _one_instance(history: Sequence[Event]) -> Iterator[Fault]:
    """I2: nobody sees another instance under an id."""
    shown: dict[str, set[str]] = defaultdict(set)
    for event in history:
        if event.sandbox and event.instance and event.kind in ("ok", "seen"):
            shown[event.sandbox].add(event.instance)
            if len(shown[event.sandbox]) > 1:
                yield (
                    f"I2: {event.sandbox} has the instances {shown[event.sandbox]}",
                    {event.sandbox},
                )


def _one_tenant(history: Sequence[Event], invoked: dict[int, Event]) -> Iterator[Fault]:
    """I6: what a tenant is answered is never another tenant's."""
    owner: dict[str, str] = {}
    for event in history:
        tenant = event.tenant or (invoked[event.call].tenant if event.call in invoked else "")
        if not event.sandbox or not tenant or event.kind != "ok":
            continue
        if owner.setdefault(event.sandbox, tenant) != tenant:
            yield f"I6: {event.sandbox} answers two tenants", {event.sandbox}


def _acknowledged(history: Sequence[Event], final: dict[str | None, str | None]) -> Iterator[Fault]:
    """I18: an acknowledged destroy is never lost."""
    for event in history:
        if event.op != "destroy" or event.kind != "ok":
            continue
        state = final.get(event.sandbox, "destroyed")
        if state not in ("destroyed", "failed", "lost", "deleted"):
            yield f"I18: {event.sandbox} was destroyed and is {state}", {event.sandbox}


def _at_the_end(
    history: Sequence[Event],
    invoked: dict[int, Event],
    keyed: dict[tuple[str, str], list[tuple[Event, Event]]],
) -> Iterator[Fault]:
    """I3: when all is quiet, one instance at most is alive per key, none of an ended sandbox."""
    alive = [e for e in history if e.kind == "alive"]
    final = {e.sandbox: e.state for e in history if e.kind == "seen"}
    for event in alive:
        if final.get(event.sandbox, "running") not in ("running", "paused", "creating", "ready"):
            yield (
                f"I3: {event.sandbox} is {final[event.sandbox]}, {event.instance} lives",
                {event.sandbox},
            )
    for (tenant, key), answers in keyed.items():
        mine = {end.sandbox for _, end in answers if end.sandbox}
        living = [e.instance for e in alive if e.sandbox in mine]
        if len(living) > 1:
            yield f"I3: {living} are alive for {key} of {tenant}", {key, *mine}
