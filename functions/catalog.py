"""THE table of functions: cloud stacks, local gateway, OpenAPI document and tests read it.

A row's module holds one `handler(event, context)`. Limits are bytes, times are seconds, memory is
MiB.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

READ, WRITE = "sandboxes:read", "sandboxes:write"
MIB = 1024 * 1024
SPEC_BYTES = 64 * 1024
SMALL_BYTES = 16 * 1024
COMMAND_BYTES = 3 * MIB  # stdin is at most 1 MiB, and JSON may need two bytes for one
FILE_BYTES = 4 * MIB
TTL_MIN, TTL_MAX = 30, 86_400
TRANSFER_SECONDS = 240
"""For copying a file where integrations stream: what says nothing for five minutes is ended."""
BUFFERED_SECONDS = 29
"""What API Gateway waits for an integration that does not stream."""


class Grant(StrEnum):
    """What a function may touch, and nothing else; `infra.cloud.grants` says it in IAM's words."""

    DOWNLOAD = "download"  # put files for clients, and sign URLs that read them
    DUE = "due"  # the index of what is due
    KEYS = "keys"  # look up an API key
    LETTERS = "letters"  # keep what cannot be taken
    LIST = "list"  # the index of a tenant's sandboxes
    PEPPER = "pepper"  # the secret behind keyed hashes
    POOLS = "pools"  # the operator's pools, credentials included
    PUBLISH = "publish"  # tell the bus
    READ = "read"  # records, attempts, audit entries, health of pools
    SEAL = "seal"  # the vault's key
    SEND = "send"  # messages to the queues
    TAKE = "take"  # read and forget what clients put
    UPLOAD = "upload"  # sign URLs by which clients put files
    WRITE = "write"  # what READ reads


_HOLDS = (Grant.PEPPER, Grant.POOLS)  # a Router is made of these
SHOWS = (*_HOLDS, Grant.READ)
MOVES = (*SHOWS, Grant.SEAL, Grant.SEND, Grant.WRITE)


@dataclass(frozen=True)
class Http:
    """One operation of the API behind its method and path.

    scope: what the key must hold; None is public. body_bytes: the most a request body may have; 0
    where the operation takes none. routed: it may wait for a provider. stream: its integration
    streams, and the function answers `Streamed`; `BUFFERED_SECONDS` do not apply.
    files: what it reads of the tree besides its modules.
    """

    name: str
    method: str
    path: str
    summary: str
    tag: str
    scope: str | None = READ
    body_bytes: int = 0
    routed: bool = False
    stream: bool = False
    timeout: int = BUFFERED_SECONDS
    memory: int = 1024
    may: tuple[Grant, ...] = MOVES
    files: tuple[str, ...] = ()

    @property
    def module(self) -> str:
        """Where its handler is."""
        return f"functions.api.{self.name}"

    @property
    def operation_id(self) -> str:
        """Its name in the OpenAPI document."""
        first, *rest = self.name.split("_")
        return first + "".join(part.capitalize() for part in rest)


@dataclass(frozen=True)
class Worker:
    """A function nobody calls over HTTP."""

    name: str
    summary: str
    timeout: int
    memory: int = 512
    may: tuple[Grant, ...] = MOVES
    files: tuple[str, ...] = ()

    @property
    def module(self) -> str:
        """Where its handler is."""
        return f"functions.workers.{self.name}"


@dataclass(frozen=True)
class Authorizer(Worker):
    """Admits API keys for the gateway, which remembers an answer for `cache_seconds`."""

    cache_seconds: int = 60


@dataclass(frozen=True)
class FromQueues(Worker):
    """Takes messages from these queues, in batches, each message answered for itself. They wait
    for one another, so more than one of them may wait for a provider that hangs.
    """

    queues: tuple[str, ...] = ()
    batch: int = 1


@dataclass(frozen=True)
class FromStream(Worker):
    """Told, in order, of items whose key begins with prefix: those the table's expiry service
    removed (`expired`), or those that are new.
    """

    prefix: str = ""
    change: Literal["expired", "new"] = "expired"
    batch: int = 10


@dataclass(frozen=True)
class FromBus(Worker):
    """Called with each event of these detail types, of any source but our own, from the
    deployment's bus: who may send is configured with the pools. What it raises is tried again.
    """

    detail_types: tuple[str, ...] = ()


@dataclass(frozen=True)
class Every(Worker):
    """Runs every so many minutes."""

    minutes: int = 1


_BOXES, _BOX = "/v1/sandboxes", "/v1/sandboxes/{id}"
_SHOTS, _SHOT = "/v1/snapshots", "/v1/snapshots/{snapshot_id}"
_S, _C, _F, _P, _N = "Sandboxes", "Commands", "Files", "Ports", "Snapshots"
_K, _M = "Catalog", "Meta"

HTTP: tuple[Http, ...] = (
    Http("create_sandbox", "POST", _BOXES, "Create a sandbox", _S, WRITE, SPEC_BYTES, True),
    Http("list_sandboxes", "GET", _BOXES, "List sandboxes", _S, may=(*SHOWS, Grant.LIST)),
    Http("get_sandbox", "GET", _BOX, "Get a sandbox", _S, routed=True),
    Http("update_sandbox", "PATCH", _BOX, "Change a sandbox", _S, WRITE, SPEC_BYTES, True),
    Http("destroy_sandbox", "DELETE", _BOX, "Destroy a sandbox", _S, WRITE, routed=True),
    Http(
        "pause_sandbox",
        "POST",
        f"{_BOX}/pause",
        "Pause a sandbox",
        _S,
        WRITE,
        SMALL_BYTES,
        True,
    ),
    Http(
        "resume_sandbox",
        "POST",
        f"{_BOX}/resume",
        "Resume a sandbox",
        _S,
        WRITE,
        SMALL_BYTES,
        True,
    ),
    Http(
        "run_command",
        "POST",
        f"{_BOX}/exec",
        "Run a command",
        _C,
        WRITE,
        COMMAND_BYTES,
        True,
        stream=True,
        timeout=900,
        memory=1769,
    ),
    Http("read_file", "GET", f"{_BOX}/files", "Read a file", _F, routed=True),
    Http("write_file", "PUT", f"{_BOX}/files", "Write a file", _F, WRITE, FILE_BYTES, True),
    Http("remove_file", "DELETE", f"{_BOX}/files", "Remove a file", _F, WRITE, routed=True),
    Http(
        "offer_download",
        "POST",
        f"{_BOX}/files/downloads",
        "Make a URL that reads a file",
        _F,
        READ,
        SMALL_BYTES,
        True,
        stream=True,
        timeout=TRANSFER_SECONDS,
        memory=1769,
        may=(*MOVES, Grant.DOWNLOAD),
    ),
    Http(
        "offer_upload",
        "POST",
        f"{_BOX}/files/uploads",
        "Make a URL that takes a file",
        _F,
        WRITE,
        SMALL_BYTES,
        True,
        may=(*MOVES, Grant.UPLOAD),
    ),
    Http(
        "take_upload",
        "POST",
        f"{_BOX}/files/uploads/{{upload_id}}",
        "Put an uploaded file in its place",
        _F,
        WRITE,
        SMALL_BYTES,
        True,
        stream=True,
        timeout=TRANSFER_SECONDS,
        memory=1769,
        may=(*MOVES, Grant.TAKE),
    ),
    Http("list_directory", "GET", f"{_BOX}/directories", "List a directory", _F, routed=True),
    Http(
        "open_port",
        "POST",
        f"{_BOX}/ports/{{port}}",
        "Open a port",
        _P,
        WRITE,
        SMALL_BYTES,
        True,
    ),
    Http("close_port", "DELETE", f"{_BOX}/ports/{{port}}", "Close a port", _P, WRITE, routed=True),
    Http(
        "take_snapshot",
        "POST",
        f"{_BOX}/snapshots",
        "Take a snapshot",
        _N,
        WRITE,
        SMALL_BYTES,
        True,
    ),
    Http("list_snapshots", "GET", _SHOTS, "List snapshots", _N, may=(*SHOWS, Grant.LIST)),
    Http("get_snapshot", "GET", _SHOT, "Get a snapshot", _N, may=SHOWS),
    Http("destroy_snapshot", "DELETE", _SHOT, "Delete a snapshot", _N, WRITE, routed=True),
    Http(
        "route_sandbox",
        "POST",
        "/v1/route",
        "Dry run of a create",
        _S,
        READ,
        SPEC_BYTES,
        may=SHOWS,
    ),
    Http("list_providers", "GET", "/v1/providers", "List providers", _K, may=SHOWS),
    Http("get_provider", "GET", "/v1/providers/{kind}", "Get a provider", _K, may=SHOWS),
    Http("list_sizes", "GET", "/v1/sizes", "List sizes", _K, may=SHOWS),
    Http("list_regions", "GET", "/v1/regions", "List regions", _K, may=SHOWS),
    Http("list_images", "GET", "/v1/images", "List images", _K, may=SHOWS),
    Http("get_health", "GET", "/v1/health", "Liveness", _M, None, memory=256, may=()),
    Http(
        "get_openapi",
        "GET",
        "/v1/openapi.json",
        "This document",
        _M,
        None,
        memory=256,
        may=(),
        files=("infra/openapi.json",),
    ),
)

WORKERS: tuple[Worker, ...] = (
    Authorizer("authorize", "Admit an API key", timeout=10, may=(*_HOLDS, Grant.KEYS)),
    FromQueues("advance", "Move sandboxes forward", timeout=60, queues=("create", "teardown")),
    FromStream(
        "publish",
        "Tell the bus",
        timeout=60,
        prefix="LOG#",
        change="new",
        may=(Grant.PUBLISH, Grant.LETTERS),
    ),
    FromStream("guard", "Wake whose guard has expired", timeout=60, prefix="GUARD#", batch=1),
    FromBus(
        "accept_event",
        "Take events of other systems",
        timeout=60,
        detail_types=("sandbox.create.requested", "sandbox.destroy.requested"),
        may=(*MOVES, Grant.LETTERS),
    ),
    Every("sweep", "Wake what is due", timeout=55, minutes=1, may=(*MOVES, Grant.DUE)),
    Every("reconcile", "Compare pools with records", timeout=290, minutes=5),
)


FUNCTIONS: tuple[Http | Worker, ...] = (*HTTP, *WORKERS)


def http(name: str) -> Http:
    """The row of an operation."""
    return next(row for row in HTTP if row.name == name)
