"""The router is killed somewhere in its very first start; the next one works, with one host."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.local.chaos.plant import Plant

DELAYS = tuple(0.1 * n for n in range(1, 13))
pytestmark = pytest.mark.slow


@pytest.fixture
def plants(tmp_path: Path) -> Iterator[list[Plant]]:
    found = []
    for n in range(len(DELAYS)):
        (tmp_path / str(n)).mkdir()
        found.append(Plant(tmp_path / str(n), seed=n, faulty=False))
    yield found
    for plant in found:
        plant.end()


def hosts(plant: Plant) -> list[int]:
    """The processes that are hosts of this plant's state."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if "infra.local.host" in words and str(plant.state / "host") in words:
            found.append(int(process.name))
    return found


def started_after_a_kill(plant: Plant, delay: float) -> str:
    """What went wrong, if anything."""
    plant.kill_starting_router(delay)
    plant.start_router()
    headers = {"Authorization": f"Bearer {plant.key}"}
    made = httpx.post(f"{plant.url}/v1/sandboxes", json={}, headers=headers, timeout=60)
    if made.status_code != 201 or plant.refusals:
        return f"{made.status_code} {made.text} {plant.refusals}"
    return "" if len(hosts(plant)) == 1 else f"hosts: {hosts(plant)}"


def test_a_first_start_may_die_anywhere(plants: list[Plant]) -> None:
    with ThreadPoolExecutor(3) as threads:
        wrong = list(threads.map(started_after_a_kill, plants, DELAYS))
    assert wrong == [""] * len(DELAYS)
