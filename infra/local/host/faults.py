"""Faults on demand: what each does, and which calls an ordered one hits."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

OPERATIONS = (
    "create", "get", "list", "delete", "pause", "resume", "timeout", "exec", "files",
    "snapshot", "snapshot_get", "snapshot_list", "snapshot_destroy", "other",
)  # fmt: skip


class Effect(Enum):
    """What becomes of the call itself."""

    REFUSED = "the vendor's own error, before any effect"
    MADE = "the effect happens, then the answer is an error"
    LOST = "the effect happens, then the connection is cut without an answer"
    CUT = "the connection is cut before any effect"
    LATE = "504 after at most a second; the effect happens `seconds` after the call"
    SLOW = "the effect and the normal answer come after `seconds`"
    HANG = "no effect and no answer for `seconds`, then the connection is cut"
    REDIRECT = "307 to another loopback port"
    GARBAGE = "200 with HTML, no effect"
    HUGE = "200 with 64 MB of JSON string, no effect"
    LAG = "lists omit what is younger than `seconds` and show instances gone for less than that"
    UNREADY = "what is captured takes `seconds`; where that is the vendor's way, after the answer"
    UNMADE = "the capture is tried and fails, as the vendor fails"


FAULTS: Mapping[str, Effect] = {
    "capacity": Effect.REFUSED,
    "rate_limited": Effect.REFUSED,
    "quota": Effect.REFUSED,
    "unauthorized": Effect.REFUSED,
    "forbidden": Effect.REFUSED,
    "policy": Effect.REFUSED,
    "invalid": Effect.REFUSED,
    "not_found": Effect.REFUSED,
    "conflict": Effect.REFUSED,
    "error_500": Effect.REFUSED,
    "error_503": Effect.REFUSED,
    "made_503": Effect.MADE,
    "lost_answer": Effect.LOST,
    "cut": Effect.CUT,
    "late": Effect.LATE,
    "slow": Effect.SLOW,
    "hang": Effect.HANG,
    "redirect": Effect.REDIRECT,
    "garbage": Effect.GARBAGE,
    "huge": Effect.HUGE,
    "list_lag": Effect.LAG,
    "slow_capture": Effect.UNREADY,
    "failed_capture": Effect.UNMADE,
}
_DEFAULT_SECONDS = {"late": 45.0, "slow": 2.0, "hang": 60.0, "list_lag": 5.0, "slow_capture": 2.0}
_ONLY: Mapping[Effect, tuple[str, ...]] = {
    Effect.LAG: ("list", "snapshot_list"),
    Effect.UNREADY: ("snapshot",),
    Effect.UNMADE: ("snapshot",),
}
"""The operations some effects are about; the first is meant where none is named."""
_FIELDS = {"account", "op", "fault", "times", "probability", "seed", "seconds", "retry_after"}


class BadFault(ValueError):
    """An order for a fault that makes no sense."""


@dataclass(slots=True)
class Fault:
    """One ordered fault."""

    id: str
    fault: str
    op: str
    account: str | None
    times: int | None
    probability: float
    seconds: float
    retry_after: int
    seed: int | None
    hits: int = 0
    chance: random.Random = field(default_factory=random.Random)

    @property
    def effect(self) -> Effect:
        """What becomes of the calls it hits."""
        return FAULTS[self.fault]

    def hit(self, account: str | None, op: str) -> bool:
        """Decide whether it hits this call, and count it if so."""
        if self.times is not None and self.hits >= self.times:
            return False
        if self.account is not None and self.account != account:
            return False
        if self.op not in ("*", op):
            return False
        if self.probability < 1 and self.chance.random() >= self.probability:
            return False
        self.hits += 1
        return True

    def to_json(self) -> dict[str, Any]:
        """Return it as the control plane shows it."""
        shown = ("id", "fault", "op", "account", "times", "probability", "seconds", "hits")
        return {name: getattr(self, name) for name in shown} | {
            "retry_after": self.retry_after,
            "seed": self.seed,
            "does": self.effect.value,
        }


class Faults:
    """The ordered faults; the oldest that hits a call decides it."""

    def __init__(self) -> None:
        self._ordered: dict[str, Fault] = {}
        self._count = 0

    def order(self, body: object, accounts: frozenset[str]) -> Fault:
        """Order a fault as a JSON body describes it."""
        if not isinstance(body, dict):
            raise BadFault("the body must be a JSON object")
        unknown = sorted(set(body) - _FIELDS)
        if unknown:
            raise BadFault(f"unknown field {unknown[0]!r}; known: {', '.join(sorted(_FIELDS))}")
        name = _one_of(body, "fault", FAULTS, None)
        account = body.get("account")
        if account is not None and account not in accounts:
            raise BadFault(f"account {account!r} is not configured here")
        self._count += 1
        seed = None if body.get("seed") is None else int(_number(body, "seed", 0))
        fault = Fault(
            id=f"fault-{self._count}",
            fault=name,
            op=_one_of(body, "op", (*OPERATIONS, "*"), _ONLY.get(FAULTS[name], ("*",))[0]),
            account=account,
            times=None if body.get("times") is None else int(_number(body, "times", 1)),
            probability=_number(body, "probability", 1.0, highest=1.0),
            seconds=_number(body, "seconds", _DEFAULT_SECONDS.get(name, 1.0), highest=3600),
            retry_after=int(_number(body, "retry_after", 1)),
            seed=seed,
            chance=random.Random(seed),
        )
        self._ordered[fault.id] = fault
        return fault

    def match(self, account: str | None, op: str) -> Fault | None:
        """Return the fault that hits this call, if any."""
        for fault in self._ordered.values():
            if op not in _ONLY.get(fault.effect, OPERATIONS):
                continue
            if fault.hit(account, op):
                return fault
        return None

    def all(self) -> list[Fault]:
        """Return every ordered fault, used up or not."""
        return list(self._ordered.values())

    def cancel(self, fault_id: str | None = None) -> bool:
        """Cancel one fault, or all; false when there is no such fault."""
        if fault_id is None:
            self._ordered.clear()
            return True
        return self._ordered.pop(fault_id, None) is not None


def _one_of(body: dict[str, Any], name: str, known: Any, default: str | None) -> str:
    value = body.get(name, default)
    if not isinstance(value, str) or value not in known:
        raise BadFault(f"{name} must be one of: {', '.join(known)}")
    return value


def _number(
    body: dict[str, Any], name: str, default: float, highest: float = float("inf")
) -> float:
    value = body.get(name, default)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise BadFault(f"{name} must be a number")
    if not 0 <= value <= highest:
        raise BadFault(f"{name} must be between 0 and {highest}")
    return float(value)
