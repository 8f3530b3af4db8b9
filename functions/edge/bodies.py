"""Bodies of requests: closed, strict, within the contract's limits; the source of their schemas.

A field of the contract whose part is not built yet is in no schema: setting it is `unsupported`,
unless it asks for what happens anyway (`LATER`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from functions.catalog import TTL_MAX, TTL_MIN
from sandbox_router.model.failure import Invalid
from sandbox_router.model.money import micro
from sandbox_router.model.secret import Secret
from sandbox_router.model.size import Shape, Sort, parse
from sandbox_router.model.spec import Cargo, Isolation, Preferences, Spec
from sandbox_router.ports import Command

from .fields import (
    MIB,
    SIZE,
    SNAPSHOT_ID,
    Env,
    Labels,
    Name,
    Path,
    env_complaints,
    label_complaints,
    path_complaints,
)
from .json import compact

DEFAULT_SIZE = "2x4"
TTL_DEFAULT = 3_600
COMMAND_BYTES, STDIN_BYTES, OUTPUT_BYTES = 64 * 1024, MIB, MIB
COMMAND_SECONDS, COMMAND_SECONDS_MAX = 60, 840
JSON_SECONDS_MAX, BUFFERED_SECONDS_MAX = 240, 25
"""A command whose answer comes at its end; and behind an integration that does not stream."""

Complaints = Iterator[tuple[str, str]]
Ttl = Annotated[int, Field(ge=TTL_MIN, le=TTL_MAX, description="Seconds from now")]
Idle = Annotated[int, Field(ge=TTL_MIN, le=TTL_MAX)]
IDLE = (
    "Destroyed with reason `idle` when unused for so many seconds; a call through the Router is a "
    "use, preview traffic and what runs inside are not (`idle_counts` says so)"
)
Amount = Annotated[float, Field(ge=0.001, le=9_999)]
Order = Annotated[list[Name], Field(max_length=32)]


def _having(**types: str) -> dict[str, Any]:
    """Schema of an object with fields of these types; a `null` one may be left out."""
    return {
        "required": [name for name, kind in types.items() if kind != "null"],
        "properties": {name: {"type": kind} for name, kind in types.items()},
    }


# What `complaints` say about fields together, as schemas.
_NO_SHAPE = _having(vcpu="null", memory_gib="null", disk_gib="null")
_SHAPE = _having(vcpu="number", memory_gib="number", size="null")
_NEW_END = _having(ttl_seconds="integer")
_NEW_LABELS, _NEW_IDLE = _having(labels="object"), _having(idle_timeout_seconds="integer")
for _other in (_NEW_LABELS, _NEW_IDLE):
    _other["properties"]["shorten"] = {"const": False}
_TEXT = _having(command="string", argv="null")
_VECTOR = _having(argv="array", command="null")
_VECTOR["properties"]["argv"]["prefixItems"] = [{"minLength": 1}]


class Body(BaseModel):
    """A closed JSON object; its values never show in a message."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)
    LATER: ClassVar[Mapping[str, tuple[Any, ...]]] = {}
    """Fields of later parts -> values that ask for nothing new."""
    OPTIONAL: ClassVar[bool] = False
    """May the body be left out?"""

    def complaints(self) -> Complaints:
        """(path, reason) pairs no schema can say."""
        yield from ()


class Nothing(Body):
    """An empty object, or no body at all."""

    OPTIONAL = True


class ProviderPreferences(Body):
    """Where the sandbox may run, and in which order pools are asked."""

    order: Order = Field(
        [],
        description="Pools or providers to ask first, in this order; one that refused for want of "
        "room just now is `cooling`, and asked after those that did not",
    )
    only: Order = Field([], description="Pools or providers that may be asked at all")
    ignore: Order = Field([], description="Pools or providers never to ask")
    allow_fallbacks: bool = Field(True, description="Ask the next candidate when one refuses")
    sort: Sort | None = Field(None, description="Order of candidates; not with a size's suffix")
    max_price_per_hour: Annotated[float, Field(ge=0, le=1_000_000)] | None = Field(
        None, description="List price limit; a pool without a known price is over it"
    )
    require: Annotated[
        list[Annotated[str, Field(pattern=r"^[a-z][a-z_]{0,62}$")]], Field(max_length=32)
    ] = Field([], description="Abilities the provider must have")

    def preferences(self, suffix: Sort | None) -> Preferences:
        """As the core has them."""
        limit = self.max_price_per_hour
        return Preferences(
            order=tuple(self.order),
            only=tuple(self.only),
            ignore=tuple(self.ignore),
            allow_fallbacks=self.allow_fallbacks,
            sort=self.sort or suffix,
            max_price_per_hour=None if limit is None else micro(limit),
            require=tuple(self.require),
        )


class SpecBody(Body):
    """What a sandbox shall be, without secrets. Without a size and a shape it is `2x4`."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [_NO_SHAPE, _SHAPE]})
    LATER = {
        "egress": (None, {"mode": "allow_all"}),
        "credentials": (None, []),
        "gpu": (None,),
        "ports": (None, []),
    }
    size: Annotated[str, Field(pattern=SIZE)] | None = Field(
        None,
        description="vCPU x GiB with an optional routing suffix (`:cheap`, `:fast`, `:stable`); "
        f"{DEFAULT_SIZE} when neither a size nor a shape is given",
        examples=["2x4", "2x4:cheap"],
    )
    vcpu: Amount | None = Field(None, description="Exact shape, with memory_gib")
    memory_gib: Amount | None = Field(None, description="Exact shape, with vcpu; to the MiB")
    disk_gib: Amount | None = Field(None, description="Only with an exact shape")
    image: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,254}$")] = Field(
        "default", description="A name in the image table or a vendor's own reference"
    )
    snapshot_id: Annotated[str, Field(pattern=SNAPSHOT_ID)] | None = Field(
        None, description="Instead of an image: what a snapshot holds, in its pool, at its size"
    )
    ttl_seconds: Ttl = Field(TTL_DEFAULT, description="Destroyed this many seconds from now")
    idle_timeout_seconds: Idle | None = Field(None, description=IDLE)
    region: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")] | None = Field(
        None, description="A pool's `region` or `geo`"
    )
    labels: Annotated[Labels, Field(max_length=15)] = Field({}, description="Your own labels")
    isolation: Literal["process", "container", "gvisor", "microvm"] | None = Field(
        None, description="The least isolation accepted"
    )
    provider: ProviderPreferences | None = Field(None, description="Preferences for routing")

    def complaints(self) -> Complaints:
        """What the fields say together."""
        shape = [name for name in ("vcpu", "memory_gib", "disk_gib") if getattr(self, name)]
        if self.size is not None and shape:
            yield "size", "either a size or a shape, not both"
        elif shape and not {"vcpu", "memory_gib"} <= set(shape):
            yield "vcpu", "a shape needs vcpu and memory_gib"
        if self.snapshot_id is not None and self.image != "default":
            yield "image", "either an image or a snapshot, not both"
        _, suffix = parse(self.size or DEFAULT_SIZE)
        if suffix and self.provider and self.provider.sort:
            yield "provider.sort", "either a size's suffix or a sort, not both"
        yield from label_complaints(self.labels)

    def within(self, limit: int) -> Self:
        """Itself, if it does not live longer than this deployment allows; raises Invalid."""
        if self.ttl_seconds > limit:
            raise Invalid(fields=(("ttl_seconds", f"at most {limit} seconds here"),))
        return self

    def to_spec(self) -> Spec:
        """As the core has it."""
        shape, suffix = parse(self.size or DEFAULT_SIZE)
        if self.vcpu is not None and self.memory_gib is not None:
            shape = Shape.of(self.vcpu, self.memory_gib, self.disk_gib)
        return Spec(
            shape=shape,
            image=self.image,
            snapshot_id=self.snapshot_id,
            sized=self.size is not None or self.vcpu is not None,
            ttl_seconds=self.ttl_seconds,
            region=self.region,
            idle_seconds=self.idle_timeout_seconds,
            isolation=None if self.isolation is None else Isolation(self.isolation),
            labels=dict(self.labels),
            prefer=(self.provider or ProviderPreferences()).preferences(suffix),  # type: ignore[call-arg]
        )

    def fingerprint(self) -> bytes:
        """Equal for requests that ask for the same: a default said or left out is the same."""
        said = {k: v for k, v in self.model_dump(exclude_defaults=True).items() if v != {}}
        if not {"size", "vcpu", "snapshot_id"} & said.keys():
            said["size"] = DEFAULT_SIZE
        return compact(said).encode()


class CreateBody(SpecBody):
    """What a sandbox shall be. Without a size and a shape it is `2x4`."""

    env: Annotated[Env, Field(max_length=100)] = Field(
        {}, repr=False, description="Environment variables; at most 32 KiB in all"
    )

    def complaints(self) -> Complaints:
        """What the fields say together."""
        yield from super().complaints()
        yield from env_complaints(self.env)

    def to_spec(self) -> Spec:
        """The request without its secrets, as the core has it."""
        return replace(super().to_spec(), env_names=tuple(sorted(self.env)))

    def to_cargo(self) -> Cargo:
        """Its secrets."""
        return Cargo(env={name: Secret(value) for name, value in self.env.items()})


class UpdateBody(Body):
    """What shall change; at least one field."""

    model_config = ConfigDict(json_schema_extra={"anyOf": [_NEW_END, _NEW_LABELS, _NEW_IDLE]})
    LATER = {"egress": (None,)}
    ttl_seconds: Ttl | None = Field(None, description="A new end of life, in seconds from now")
    shorten: bool = Field(False, description="Allow the new end to be earlier")
    labels: Annotated[Labels, Field(max_length=15)] | None = Field(
        None, description="Replace all labels by these"
    )
    idle_timeout_seconds: Idle | None = Field(None, description=IDLE)

    def complaints(self) -> Complaints:
        """What the fields say together."""
        if (self.ttl_seconds, self.labels, self.idle_timeout_seconds) == (None, None, None):
            yield "body", "nothing to change"
        if self.shorten and self.ttl_seconds is None:
            yield "shorten", "only with ttl_seconds"
        yield from label_complaints(self.labels or {})


class PauseBody(Body):
    """What must survive the pause."""

    OPTIONAL = True
    keep: Literal["memory", "disk"] = Field("memory", description="What must survive at least")


class CommandBody(Body):
    """A command: shell text or an argument vector, not both."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [_TEXT, _VECTOR]})
    LATER = {"tty": (None, False), "detach": (None, False)}
    command: Annotated[str, Field(min_length=1, max_length=COMMAND_BYTES)] | None = Field(
        None, repr=False, description="Shell text", examples=["echo hello"]
    )
    argv: (
        Annotated[
            list[Annotated[str, Field(max_length=COMMAND_BYTES)]],
            Field(min_length=1, max_length=1000),
        ]
        | None
    ) = Field(None, repr=False, description="Program and arguments, without a shell")
    cwd: Path | None = Field(None, description="Absolute directory to run in")
    env: Annotated[Env, Field(max_length=100)] = Field({}, repr=False)
    stdin: Annotated[str, Field(max_length=STDIN_BYTES)] | None = Field(None, repr=False)
    timeout_seconds: Annotated[float, Field(ge=0.1, le=COMMAND_SECONDS_MAX)] = Field(
        COMMAND_SECONDS,
        description=f"At most {JSON_SECONDS_MAX} when the answer is no event stream; then the "
        "command is ended",
    )
    max_output_bytes: Annotated[int, Field(ge=0, le=4 * MIB)] = Field(
        OUTPUT_BYTES,
        description="Bytes kept of each stream; the whole answer stays under 4 MiB. Events have "
        "all output unless this is set",
    )

    def complaints(self) -> Complaints:
        """What the fields say together."""
        if (self.command is None) == (self.argv is None):
            yield "command", "exactly one of command and argv"
        for name, text, limit in (
            ("command", self.command or "", COMMAND_BYTES),
            ("argv", "".join(self.argv or ()), COMMAND_BYTES),
            ("stdin", self.stdin or "", STDIN_BYTES),
        ):
            if len(text.encode()) > limit:
                yield name, f"at most {limit} bytes"
        if self.argv and not self.argv[0]:
            yield "argv[0]", "must name a program"
        if self.cwd is not None:
            yield from path_complaints(self.cwd, "cwd")
        yield from env_complaints(self.env)

    def to_command(self, seconds: float | None = None) -> Command:
        """As the core has it, with so much time instead of what was asked for."""
        return Command(
            argv=None if self.argv is None else tuple(self.argv),
            shell=self.command,
            cwd=self.cwd,
            env={name: Secret(value) for name, value in self.env.items()},
            stdin=None if self.stdin is None else self.stdin.encode(),
            timeout_seconds=float(seconds or self.timeout_seconds),
        )
