"""The log of vendor calls: who asked for what under which identity. No bodies, no secrets."""

from __future__ import annotations

from collections import deque
from dataclasses import asdict, dataclass, field
from typing import Any

from infra.local.host.instance import now_ms
from infra.local.host.moments import rfc3339

_KEEP = 50_000


@dataclass(slots=True)
class Call:
    """One call of a client to a dialect."""

    account: str | None
    op: str
    method: str
    path: str
    identity: str | None = None
    instance_id: str | None = None
    status: int | None = None
    fault: str | None = None
    seq: int = 0
    at_ms: int = field(default_factory=now_ms)

    def to_json(self) -> dict[str, Any]:
        """Return it as the control plane shows it."""
        return {**asdict(self), "at": rfc3339(self.at_ms)}


class CallLog:
    """The newest calls, oldest first."""

    def __init__(self) -> None:
        self._calls: deque[Call] = deque(maxlen=_KEEP)
        self._seq = 0

    def add(self, call: Call) -> None:
        """Log a call as it arrives; its outcome is filled in later."""
        self._seq += 1
        call.seq = self._seq
        self._calls.append(call)

    def read(self, *, account: str | None, op: str | None, after: int) -> list[Call]:
        """Return the calls that match, oldest first."""
        return [
            call
            for call in self._calls
            if call.seq > after
            and (account is None or call.account == account)
            and (op is None or call.op == op)
        ]
