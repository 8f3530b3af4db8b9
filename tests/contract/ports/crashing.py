"""What the crash tests run in a process of its own, to kill it."""

from __future__ import annotations

import itertools
import os
import threading
from pathlib import Path

from adapters.embedded.queue import SqliteQueue
from adapters.embedded.table import SqliteTable
from adapters.system import SystemClock
from sandbox_router.table import ConditionFailed, Put, Test, Update, missing, when

THREADS = 4


def write_forever(folder: Path, round: int) -> None:
    """Each thread: three items a transaction, and a line in `acks` once it is acknowledged."""
    table = SqliteTable(folder / "table.db")
    acks = os.open(folder / "acks", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def main(number: int) -> None:
        name = f"{round}-{number}"
        for step in itertools.count(1):
            table.write(
                Put((name, f"left-{step:06}"), {"body": "x" * 500}, missing()),
                Put((name, f"right-{step:06}"), {"due_shard": name, "due_at": step}, missing()),
                Update((name, "count"), add={"n": 1}),
            )
            os.write(acks, f"{name} {step}\n".encode())

    _all(main)


def send_forever(folder: Path, round: int) -> None:
    """Each thread: sends, and every third time takes one and is done with it."""
    queue = SqliteQueue(folder / "queue.db", clock := SystemClock())
    log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def main(number: int) -> None:
        for step in itertools.count():
            queue.send("create", f"{round}-{number}-{step}")
            os.write(log, f"sent {round}-{number}-{step}\n".encode())
            if step % 3 == 0:
                for message in queue.receive("create", 1, 120, clock.now()):
                    os.write(log, f"took {message.record_id}\n".encode())
                    queue.done(message)

    _all(main)


def increment(path: Path, times: int) -> None:
    """Each thread: so many increments by compare and set."""
    table = SqliteTable(path)

    def main(_: int) -> None:
        for _ in range(times):
            while True:
                try:
                    have = (table.get(("pk", "sk")) or {}).get("n", 0)
                    assert isinstance(have, int)
                    same = when(Test("n", "=", have)) if have else missing()
                    table.write(Update(("pk", "sk"), set={"n": have + 1}, when=same))
                    break
                except ConditionFailed:
                    continue

    _all(main)
    table.close()


def _all(main: object) -> None:
    threads = [
        threading.Thread(target=main, args=(n,))  # type: ignore[arg-type]
        for n in range(THREADS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
