"""What a conformance case is, what it works with, and what its run reports."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeVar

from sandbox_router.model.capability import Profile
from sandbox_router.model.failure import Failure
from sandbox_router.model.secret import Secret
from sandbox_router.model.size import Shape
from sandbox_router.model.spec import Cargo
from sandbox_router.ports import (
    Command,
    Content,
    Exit,
    Extends,
    HoldsFiles,
    Instance,
    OpensPorts,
    Order,
    Output,
    Pauses,
    Provider,
    Ref,
    RunsCommands,
    Snapshots,
)

ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"
F = TypeVar("F", bound=Failure)


class Broken(Exception):
    """The provider did not do what the case asks for."""


class Missing(Exception):
    """This run lacks what the case needs; it says what."""


class Faults(Protocol):
    """Breaks the provider on purpose. A stand-in can; a real account cannot."""

    def order(self, operation: str, fault: str) -> None:
        """Let the next call of the operation meet the fault."""
        ...

    def clear(self) -> None:
        """Forget what was ordered."""
        ...


@dataclass
class Bench:
    """One account under test and everything the cases made and captured in it.

    stranger: the same provider opened with a key it does not know. dials: can this machine reach
    the instances' ports?
    """

    provider: Provider
    profile: Profile
    reference: str
    shape: Shape
    lifetime_seconds: int = 300
    faults: Faults | None = None
    stranger: Provider | None = None
    dials: bool = True
    made: set[str] = field(default_factory=set)
    taken: set[str] = field(default_factory=set)
    _shared: Instance | None = None

    def order(
        self,
        tags: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
        lifetime_seconds: int | None = None,
    ) -> Order:
        """A new order under an identity nobody used before."""
        identity = f"r-{letters(38)}"
        own = {"constal-sandbox-id": f"sbx-{letters(26)}", "constal-sandbox": identity}
        return Order(
            identity,
            self.reference,
            self.shape,
            {**own, **(tags or {})},
            lifetime_seconds or self.lifetime_seconds,
            Cargo({name: Secret(value) for name, value in (env or {}).items()}),
        )

    def create(self, order: Order | None = None) -> Instance:
        """Make an instance; `close` destroys it."""
        timeout = self.profile.timeouts.create
        instance = self.provider.create(order or self.order(), timeout=timeout)
        self.made.add(instance.id)
        return instance

    def shared(self) -> Ref:
        """One running instance for all cases that leave it as it is."""
        if self._shared is None:
            self._shared = self.create()
        return Ref(self._shared.id, self._shared.access)

    def lost(self, order: Order, fault: str) -> None:
        """Make an instance whose answer does not arrive; raises Missing without faults."""
        self.broken("create", fault)
        refused(Failure, lambda: self.create(order))

    def broken(self, operation: str, fault: str) -> None:
        """Let the next such call meet a fault; raises Missing where nothing can be broken."""
        if self.faults is None:
            raise Missing("faults")
        self.faults.order(operation, fault)

    def shell(self, ref: Ref, text: str, **options: Any) -> Ran:
        """Run a shell command to its end; raises Missing where commands are not declared."""
        return self.run(ref, Command(shell=text, **options))

    def run(self, ref: Ref, command: Command) -> Ran:
        """Run a command to its end."""
        parts: dict[str, list[bytes]] = {"stdout": [], "stderr": []}
        ends: list[Exit] = []
        for item in self.commands.run(ref, command):
            if isinstance(item, Output):
                check(not ends, "output came after the exit")
                parts[item.stream].append(item.data)
            else:
                ends.append(item)
        check(len(ends) == 1, f"{len(ends)} exits for one command")
        return Ran(b"".join(parts["stdout"]), b"".join(parts["stderr"]), ends[0])

    def read(self, ref: Ref, path: str, limit: int) -> bytes:
        """A file's content; raises Missing where files are not declared."""
        with self.files.read_file(ref, path, limit) as pieces:
            return b"".join(pieces)

    def write(self, ref: Ref, path: str, data: bytes) -> None:
        """Make or replace a file."""
        self.files.write_file(ref, path, Content.of(data))

    @property
    def commands(self) -> RunsCommands:
        """The provider as one that runs commands; raises Missing."""
        if isinstance(self.provider, RunsCommands):
            return self.provider
        raise Missing("commands")

    @property
    def files(self) -> HoldsFiles:
        """The provider as one that holds files; raises Missing."""
        if isinstance(self.provider, HoldsFiles):
            return self.provider
        raise Missing("files")

    @property
    def ports(self) -> OpensPorts:
        """The provider as one that opens ports; raises Missing."""
        if isinstance(self.provider, OpensPorts):
            return self.provider
        raise Missing("ports")

    @property
    def pauses(self) -> Pauses:
        """The provider as one that pauses; raises Missing."""
        if isinstance(self.provider, Pauses):
            return self.provider
        raise Missing("pause")

    @property
    def extends(self) -> Extends:
        """The provider as one whose limit moves; raises Missing."""
        if isinstance(self.provider, Extends):
            return self.provider
        raise Missing("extend")

    @property
    def snapshots(self) -> Snapshots:
        """The provider as one that captures; raises Missing."""
        if isinstance(self.provider, Snapshots):
            return self.provider
        raise Missing("snapshots")

    def close(self) -> None:
        """Destroy what the cases made, as far as the provider lets us."""
        if self.faults is not None:
            self.faults.clear()
        for instance_id in sorted(self.made):
            with suppress(Failure):  # its lifetime ends it
                self.provider.destroy(instance_id)
        for capture_id in sorted(self.taken):  # last: something may be made of them
            with suppress(Failure):
                self.snapshots.destroy_capture(capture_id)
        self.made.clear()
        self.taken.clear()
        self._shared = None


@dataclass(frozen=True)
class Ran:
    """A command that ended."""

    stdout: bytes
    stderr: bytes
    exit: Exit


@dataclass(frozen=True)
class Case:
    """A requirement and the function that shows it; `needs` are abilities of the profile."""

    id: str
    title: str
    perform: Callable[[Bench], None]
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Result:
    """How a case went. `detail` is in our words and holds no secret."""

    id: str
    title: str
    outcome: Literal["passed", "failed", "skipped"]
    detail: str = ""
    seconds: float = 0.0


CASES: list[Case] = []
"""Every case, in the order it is written."""


def case(id: str, *needs: str) -> Callable[[Callable[[Bench], None]], Case]:
    """Make a function the case of a requirement; its docstring is the title."""

    def made(perform: Callable[[Bench], None]) -> Case:
        CASES.append(Case(id, (perform.__doc__ or "").rstrip("."), perform, needs))
        return CASES[-1]

    return made


def perform(one: Case, bench: Bench) -> Result:
    """Run one case; whatever happens becomes its result."""
    absent = [need for need in one.needs if not bench.profile.can(need)]
    if absent:
        return Result(one.id, one.title, "skipped", f"not declared: {', '.join(absent)}")
    started = time.monotonic()
    try:
        one.perform(bench)
        outcome, detail = "passed", ""
    except Missing as missing:
        outcome, detail = "skipped", f"this run has no {missing}"
    except (Broken, Failure) as problem:
        outcome, detail = "failed", f"{type(problem).__name__}: {problem}"
    except Exception as error:
        # Its text may hold anything, also what the provider said.
        outcome, detail = "failed", type(error).__name__
    finally:
        if bench.faults is not None:
            bench.faults.clear()
    seconds = round(time.monotonic() - started, 3)
    return Result(one.id, one.title, outcome, detail, seconds)  # type: ignore[arg-type]


def check(holds: bool, otherwise: str) -> None:
    """Raise Broken unless it holds."""
    if not holds:
        raise Broken(otherwise)


def refused(kind: type[F], call: Callable[[], object]) -> F:
    """The failure of this kind that the call raises; raises Broken when it does not."""
    try:
        call()
    except kind as failure:
        return failure
    except Failure as other:
        problem = f"{type(other).__name__} instead of {kind.__name__}"
    else:
        problem = f"success instead of {kind.__name__}"
    raise Broken(problem)


def until(holds: Callable[[], bool], seconds: float, otherwise: str) -> None:
    """Ask again until it holds; raises Broken after so many seconds."""
    end = time.monotonic() + seconds
    while not holds():
        check(time.monotonic() < end, otherwise)
        time.sleep(0.1)


def letters(count: int) -> str:
    """Random base32 in lower case."""
    return "".join(secrets.choice(ALPHABET) for _ in range(count))
