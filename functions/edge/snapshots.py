"""What is asked of snapshots, and what the answers look like."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field
from typing_extensions import TypedDict

from sandbox_router.lifecycle.snapshots import DAYS
from sandbox_router.model.snapshot import SnapshotState

from .bodies import Body
from .fields import SANDBOX_ID
from .json import compact
from .params import PageQuery, commas
from .replies import Attempt, Shape, Time

TTL_MIN, TTL_MAX = 60, 366 * 86_400
_STATES = tuple(str(state) for state in SnapshotState)


class SnapshotBody(Body):
    """What shall be captured, and how long it is kept."""

    OPTIONAL = True
    contents: Literal["memory", "disk"] | None = Field(
        None, description="What must be captured; without it, what the provider captures"
    )
    ttl_seconds: Annotated[int, Field(ge=TTL_MIN, le=TTL_MAX)] = Field(
        DAYS * 86_400, description="Deleted this many seconds from now, whatever became of the rest"
    )

    def fingerprint(self, sandbox_id: str) -> bytes:
        """Equal for requests that ask for the same of the same sandbox."""
        return compact({"sandbox_id": sandbox_id, **self.model_dump()}).encode()


class SnapshotsQuery(PageQuery):
    """Which snapshots to list."""

    state: Annotated[
        list[Literal[_STATES]],  # type: ignore[valid-type]
        Field(max_length=32),
        BeforeValidator(commas),
    ] = Field([], description="Repeatable; without it all but `deleted`")
    sandbox_id: Annotated[str, Field(pattern=SANDBOX_ID)] | None = Field(
        None, description="Only those of this sandbox"
    )


class Snapshot(TypedDict):
    """A snapshot, which outlives its sandbox. `interrupts`: what taking it does to the sandbox,
    null where the provider does not say; `size`: that of a sandbox made from it.
    """

    id: str
    state: Literal["creating", "ready", "deleting", "deleted", "failed"]
    state_reason: str | None
    sandbox_id: str
    created_at: Time
    ready_at: Time | None
    expires_at: Time
    contents: Literal["memory", "disk"]
    interrupts: Literal["pause", "stop"] | None
    size_bytes: int | None
    size: Shape
    provider: str
    pool_id: str
    attempts: list[Attempt]


class Snapshots(TypedDict):
    """One page; it may be short: follow the cursor until it is null."""

    data: list[Snapshot]
    next_cursor: str | None
