"""The bus contract: what other systems may ask for in events, and what ours look like.

The schemas in `events/schema` are made from these types (`infra.schemas`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from sandbox_router.model.failure import Failure, Forbidden, Invalid

from .bodies import Body, SpecBody
from .config import EventSource
from .fields import SANDBOX_ID
from .json import parse
from .replies import State, Time

DETAIL_BYTES = 64 * 1024
KEYS, NAME_LENGTH = 50, 100
_ID = re.compile(r"[A-Za-z0-9-]{1,64}", re.ASCII)


class CreateRequested(SpecBody):
    """A sandbox, please. The event's id is the idempotency key; values of `env` and `credentials`
    cannot travel in an event.
    """

    LATER = SpecBody.LATER | {"env": (None, {}), "env_secret_arn": (None,)}


class DestroyRequested(Body):
    """No longer needed."""

    sandbox_id: Annotated[str, Field(pattern=SANDBOX_ID)]


class _Told(TypedDict):
    event_id: str
    sandbox_id: str
    tenant: str
    occurred_at: Time
    caused_by: NotRequired[str]


class StateChanged(_Told):
    """A sandbox is in another state; `previous_state` is null when it is new. `event_id` is the
    same however often this is told, `caused_by` is the id of the request it began with.
    """

    state: State
    previous_state: State | None
    reason: str | None


class Failover(_Told):
    """Another pool is asked for this sandbox; `reason` is the code of the failure before."""

    attempt: int
    pool_id: str
    previous_pool_id: str
    reason: str | None


class OrphanFound(_Told):
    """An instance of ours that no record had a use for was found in a pool, and destroyed."""

    pool_id: str
    instance_id: str


IN: dict[str, type[Body]] = {
    "sandbox.create.requested": CreateRequested,
    "sandbox.destroy.requested": DestroyRequested,
}
OUT: dict[str, Any] = {
    "sandbox.state.changed": StateChanged,
    "sandbox.failover": Failover,
    "sandbox.orphan.found": OrphanFound,
}


@dataclass(frozen=True)
class Asked:
    """An event as EventBridge delivers it."""

    id: str
    source: str
    type: str
    account: str | None
    detail: Any = field(repr=False)

    @classmethod
    def of(cls, event: Any) -> Asked:
        """Its envelope, as far as it has one."""
        found = event if isinstance(event, Mapping) else {}
        texts = {name: value for name, value in found.items() if isinstance(value, str)}
        return cls(
            id=texts.get("id", ""),
            source=texts.get("source", ""),
            type=texts.get("detail-type", ""),
            account=texts.get("account"),
            detail=found.get("detail"),
        )

    @property
    def names(self) -> dict[str, str]:
        """What of the envelope may be shown to people: short and in ASCII."""
        given = {"event_id": self.id, "source": self.source, "detail_type": self.type}
        return {
            name: text[:NAME_LENGTH].encode("ascii", "replace").decode()
            for name, text in given.items()
        }

    def told(self) -> Any:
        """The detail, checked as strictly as a body; raises Invalid."""
        if not _ID.fullmatch(self.id):
            raise Invalid(fields=(("id", "must be an event's id"),))
        text = json.dumps(self.detail).encode()
        if len(text) > DETAIL_BYTES:
            raise Invalid(fields=(("detail", f"at most {DETAIL_BYTES} bytes"),))
        return parse(text)

    def admitted(self, sources: Mapping[str, EventSource]) -> EventSource:
        """Whose it is; raises Forbidden for a source nobody configured, or from elsewhere."""
        source = sources.get(self.source)
        if source is None:
            raise Forbidden("This source is not configured")
        if source.account is not None and source.account != self.account:
            raise Forbidden("This source may not send from this account")
        return source

    def letter(self, failure: Failure) -> dict[str, Any]:
        """What is kept of it when it cannot be taken: names and why, no values."""
        keys = sorted(self.detail)[:KEYS] if isinstance(self.detail, Mapping) else []
        fields = [{"path": path, "reason": reason} for path, reason in failure.fields]
        return {
            **self.names,
            "detail_keys": [str(key)[:NAME_LENGTH] for key in keys],
            "code": failure.code,
            "reason": failure.detail,
            "field_errors": fields,
        }
