"""What answers look like: only types, cheap to import; `infra.openapi` makes schemas of them."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, NotRequired

from typing_extensions import TypedDict

State = Literal[
    "starting",
    "running",
    "pausing",
    "paused",
    "resuming",
    "destroying",
    "destroyed",
    "failed",
    "lost",
]
Time = datetime
"""As JSON has it: RFC 3339 text in UTC."""
Isolation = Literal["process", "container", "gvisor", "microvm"]
FailureClass = Literal[
    "capacity",
    "rate_limited",
    "quota",
    "region",
    "outage",
    "unsupported",
    "invalid",
    "permission",
    "policy",
    "conflict",
    "not_found",
    "unknown_outcome",
    "internal",
]


class Gpu(TypedDict):
    """Accelerators."""

    type: str
    count: int


class Shape(TypedDict):
    """What a sandbox is made of; null means the provider's default."""

    vcpu: float
    memory_gib: float
    disk_gib: float | None
    gpu: Gpu | None


class Price(TypedDict):
    """A list price, where it was read and when."""

    currency: str
    per_hour: float
    as_of: str
    source: str


class Cost(Price):
    """The running estimate from the list price at create; the provider's bill decides."""

    estimated: float


class Candidate(TypedDict):
    """A pool that can serve the request, and why it is where it is."""

    pool_id: str
    provider: str
    price_per_hour: float | None
    reasons: list[str]


Attempt = TypedDict(
    "Attempt",
    {
        "n": int,
        "pool_id": str,
        "provider": str,
        "outcome": Literal["created", "refused", "unknown", "adopted", "gone"],
        "class": FailureClass | None,
        "started_at": Time,
        "ended_at": Time | None,
    },
)
Attempt.__doc__ = "One try to create an instance."


class Sandbox(TypedDict):
    """A sandbox."""

    id: str
    state: State
    state_reason: str | None
    observed_at: Time | None
    created_at: Time
    started_at: Time | None
    expires_at: Time
    idle_timeout_seconds: int | None
    idle_counts: Literal["router_calls"] | None
    labels: dict[str, str]
    image: str | None
    snapshot_id: str | None
    size: Shape
    region: str | None
    provider: str | None
    pool_id: str | None
    instance_id: str | None
    isolation: Isolation | None
    env_names: list[str]
    cost: Cost | None
    route: list[Candidate]
    attempts: list[Attempt]


class PausedSandbox(Sandbox):
    """A sandbox, and what survived its last pause."""

    kept: Literal["memory", "disk", "nothing"] | None


class Sandboxes(TypedDict):
    """One page; it may be short: follow the cursor until it is null."""

    data: list[Sandbox]
    next_cursor: str | None


class Truncated(TypedDict):
    """Bytes that are not in the answer."""

    stdout_bytes: int
    stderr_bytes: int


class Execution(TypedDict):
    """How a command ended. Text that is no UTF-8 is there with replacement signs, and exact in
    base64.
    """

    exec_id: str
    exit_code: int | None
    stdout: str
    stderr: str
    stdout_b64: NotRequired[str]
    stderr_b64: NotRequired[str]
    timed_out: bool
    signal: NotRequired[str]
    truncated: Truncated
    duration_ms: int
    stderr_mode: Literal["separate", "merged"]


class Started(TypedDict):
    """The command was sent; event `started`."""

    exec_id: str
    stderr_mode: Literal["separate", "merged"]


class Written(TypedDict):
    """Output; events `stdout` and `stderr`. `b64` is there when the bytes are no UTF-8: it has
    them exactly, and `text` has replacement signs. A character is never split between events.
    """

    text: str
    b64: NotRequired[str]


class Exited(TypedDict):
    """It ended; event `exit`, the last. `exit_code` is null when the provider does not say."""

    exit_code: int | None
    signal: NotRequired[str]
    duration_ms: int
    truncated: Truncated


class TimedOut(TypedDict):
    """Its time was over and it was ended; event `timeout`, the last."""

    signal: NotRequired[str]
    duration_ms: int
    truncated: Truncated


class Entry(TypedDict):
    """A directory entry."""

    name: str
    path: str
    kind: Literal["file", "directory", "symlink", "other"]
    size: int | None
    modified_at: Time | None


class Directory(TypedDict):
    """Direct children, by name."""

    data: list[Entry]


class Endpoint(TypedDict):
    """A preview URL and the headers it wants."""

    url: str
    headers: dict[str, str]
    visibility: Literal["private", "public"]
    expires_at: Time | None


class Upload(TypedDict):
    """A request that takes a file until `expires_at`; `upload_id` is for `takeUpload`."""

    upload_id: str
    url: str
    method: Literal["PUT"]
    headers: dict[str, str]
    expires_at: Time


class Download(TypedDict):
    """A request that reads a file until `expires_at`, with the headers it wants."""

    url: str
    method: Literal["GET"]
    headers: dict[str, str]
    size_bytes: int
    expires_at: Time


class Ineligible(TypedDict):
    """A pool that cannot serve the request, with every reason."""

    pool_id: str
    provider: str
    reasons: list[str]


class Route(TypedDict):
    """What a create would do: pools in order, and why each other pool is not one."""

    candidates: list[Candidate]
    refused: list[Ineligible]


class Health(TypedDict):
    """The function runs."""

    status: Literal["ok"]


class FieldError(TypedDict):
    """What is wrong where; never with the value."""

    path: str
    reason: str


Problem = TypedDict(
    "Problem",
    {
        "type": str,
        "title": str,
        "status": int,
        "detail": str,
        "code": str,
        "class": FailureClass,
        "retryable": bool,
        "outcome": Literal["none", "done", "unknown"],
        "request_id": str,
        "attempts": NotRequired[list[Attempt]],
        "field_errors": NotRequired[list[FieldError]],
    },
)
Problem.__doc__ = "RFC 9457. `outcome`: may the effect have happened?"

EVENTS = {
    "started": Started,
    "stdout": Written,
    "stderr": Written,
    "exit": Exited,
    "error": Problem,
    "timeout": TimedOut,
}
"""A command's events and their data."""
EVENTS_EXAMPLE = """id: 1
event: started
data: {"exec_id":"exec-aaaaaaaaaaaaaaaaaaaaaaaaaa","stderr_mode":"separate"}

id: 2
event: stdout
data: {"text":"hello\\n"}

: ping

id: 3
event: exit
data: {"exit_code":0,"duration_ms":12,"truncated":{"stdout_bytes":0,"stderr_bytes":0}}

"""
