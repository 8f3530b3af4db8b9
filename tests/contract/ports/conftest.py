"""Every driver of the storage ports, behind one handle each."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pytest

from adapters.aws.secrets import SecretStore
from adapters.aws.vault import SecretVault
from adapters.embedded.queue import SqliteQueue
from adapters.embedded.table import SqliteTable
from adapters.embedded.vault import FileVault
from adapters.folder import FolderObjects
from sandbox_router.model.secret import Secret
from sandbox_router.ports import Objects, Table, Vault
from sandbox_router.table import EVERYTHING, Contended, Item, Key, Page, Range, Write
from tests.contract.aws.cloud import bucket_of, made_secret, table_of
from tests.fakes.clock import FakeClock
from tests.fakes.objects import MemoryObjects
from tests.fakes.queue import MemoryQueue
from tests.fakes.table import MemoryTable
from tests.fakes.vault import FakeVault
from tests.fakes.weak import Weak

T = TypeVar("T")
LAG_MS = 500
RAM = Path("/dev/shm")


@dataclass
class Patient:
    """The table under test; a Contended call is made again, an index is given time."""

    inner: Table
    clock: FakeClock = field(default_factory=FakeClock)

    def get(self, key: Key, *, consistent: bool = True) -> Item | None:
        return self._again(lambda: self.inner.get(key, consistent=consistent))

    def write(self, *writes: Write) -> None:
        self._again(lambda: self.inner.write(*writes))

    def query(
        self,
        index: str | None,
        hash: str,
        range: Range = EVERYTHING,
        *,
        limit: int = 100,
        cursor: str | None = None,
        descending: bool = False,
    ) -> Page:
        self.clock.sleep(LAG_MS / 1000)
        return self._again(
            lambda: self.inner.query(
                index, hash, range, limit=limit, cursor=cursor, descending=descending
            )
        )

    def pages(
        self,
        index: str | None,
        hash: str,
        range: Range = EVERYTHING,
        *,
        limit: int = 100,
        descending: bool = False,
    ) -> list[Item]:
        """All items, page by page."""
        items: list[Item] = []
        cursor: str | None = None
        while True:
            page = self.query(index, hash, range, limit=limit, cursor=cursor, descending=descending)
            assert len(page.items) <= limit
            items.extend(page.items)
            if (cursor := page.cursor) is None:
                return items

    def _again(self, call: Callable[[], T]) -> T:
        for _ in range(1000):
            try:
                return call()
            except Contended:
                time.sleep(0)
        raise AssertionError("contended a thousand times")


def weak(inner: Table, clock: FakeClock) -> Weak:
    chance = random.Random(7)
    return Weak(inner, chance, clock, lag_ms=LAG_MS, contended=0.2, throttled=0.1, short=0.3)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """In memory where the system can: a sync per file made would cost more than the tests. The
    crash tests use the disk."""
    if not RAM.is_dir():
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=RAM) as name:
        yield Path(name)


@contextmanager
def opened(driver: str, request: pytest.FixtureRequest) -> Iterator[Table]:
    """An empty table of this driver."""
    if driver == "memory":
        yield MemoryTable()
    elif driver == "sqlite":
        with closing(SqliteTable(request.getfixturevalue("folder") / "table.db")) as sqlite:
            yield sqlite
    else:
        with table_of(request.getfixturevalue("account")) as dynamodb:
            yield dynamodb


DRIVERS = ("memory", "sqlite", "dynamodb")


@pytest.fixture(params=[*DRIVERS, *(f"weak {driver}" for driver in DRIVERS)])
def table(request: pytest.FixtureRequest) -> Iterator[Patient]:
    clock = FakeClock()
    with opened(request.param.removeprefix("weak "), request) as inner:
        yield Patient(weak(inner, clock) if "weak" in request.param else inner, clock)


@dataclass
class Queues:
    """A queue on a clock of its own; `reborn` is its worker after a crash."""

    queue: MemoryQueue | SqliteQueue
    clock: FakeClock
    reborn: Callable[[], MemoryQueue | SqliteQueue]

    def look(self, name: str = "create", limit: int = 10) -> list[str]:
        """Receive what is due now, done at once."""
        found = self.queue.receive(name, limit, 120, self.clock.now())
        for message in found:
            self.queue.done(message)
        return [message.record_id for message in found]


@pytest.fixture(params=["memory", "sqlite"])
def queues(request: pytest.FixtureRequest, folder: Path) -> Iterator[Queues]:
    clock = FakeClock()
    if request.param == "memory":
        memory = MemoryQueue(clock)

        def restart() -> MemoryQueue:
            memory.restart()
            return memory

        yield Queues(memory, clock, restart)
        return
    opened: list[SqliteQueue] = []

    def reopen() -> SqliteQueue:
        opened.append(SqliteQueue(folder / "queue.db", clock))
        return opened[-1]

    yield Queues(reopen(), clock, reopen)
    for queue in opened:
        queue.close()


@pytest.fixture(params=["fake", "file", "secret"])
def vault(request: pytest.FixtureRequest, tmp_path: Path) -> Vault:
    if request.param == "secret":
        manager = request.getfixturevalue("account").made("secretsmanager")
        return SecretVault(SecretStore(manager), made_secret(manager, "k" * 64))
    return FakeVault() if request.param == "fake" else FileVault(tmp_path / "vault.key")


@pytest.fixture(params=["memory", "folder", "s3"])
def objects(request: pytest.FixtureRequest, folder: Path) -> Iterator[Objects]:
    if request.param == "s3":
        with bucket_of(request.getfixturevalue("account")) as bucket:
            yield bucket
    elif request.param == "memory":
        yield MemoryObjects()
    else:
        there = folder / "objects"
        secret = Secret("p" * 64)
        yield FolderObjects(there, "http://127.0.0.1:1", lambda: secret, FakeClock())
        assert not [path for path in there.glob(".*")]
