"""A disk without room: a plain 503, nothing said that is not so, and all goes on afterwards.

Room is taken from the router alone, by a limit on the size of its files.
"""

from __future__ import annotations

import resource
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from infra.local.state import write_private
from tests.local.acceptance.deployment import Deployment, eventually

pytestmark = pytest.mark.slow
ANY = resource.RLIM_INFINITY


@contextmanager
def no_room(deployment: Deployment) -> Iterator[None]:
    assert deployment.router is not None
    resource.prlimit(deployment.router.pid, resource.RLIMIT_FSIZE, (0, ANY))
    try:
        yield
    finally:
        resource.prlimit(deployment.router.pid, resource.RLIMIT_FSIZE, (ANY, ANY))


@pytest.fixture
def deployment(tmp_path: Path) -> Iterator[Deployment]:
    found = Deployment(tmp_path)
    yield found
    found.end()


def test_without_room_a_create_is_store_busy_and_what_lives_can_be_used(
    deployment: Deployment,
) -> None:
    deployment.start()
    made = deployment.create("first", ttl_seconds=30).json()
    box = f"/v1/sandboxes/{made['id']}"
    with no_room(deployment):
        refused = [deployment.create(f"full-{n}") for n in range(3)]
        refused += [deployment.api.post(f"{box}/pause"), deployment.api.delete(box)]
        assert {(a.status_code, a.json()["code"]) for a in refused} == {(503, "store_busy")}
        assert deployment.create("first", ttl_seconds=30).json() == made
        assert deployment.get(made["id"])["state"] == "running"
        ran = deployment.api.post(f"{box}/exec", json={"command": "echo hi"})
        assert (ran.status_code, ran.json()["stdout"]) == (200, "hi\n")
        time.sleep(31)  # past its deadline: nobody can claim it, and nobody says it is gone
        assert deployment.get(made["id"])["state"] == "running"
        assert [one["id"] for one in deployment.instances()] == [made["instance_id"]]
    eventually(lambda: deployment.instances() == [], 5)
    eventually(lambda: deployment.get(made["id"])["state"] == "destroyed", 5)
    answers = [deployment.create(f"full-{n}") for n in range(3)]
    assert [answer.status_code for answer in answers] == [201] * 3
    assert len(deployment.instances()) == 3


@pytest.mark.parametrize("command", [[], ["stop"]])
def test_a_start_or_a_stop_without_room_says_so(deployment: Deployment, command: list[str]) -> None:
    deployment.state.mkdir()
    (deployment.state / "router.lock").touch()
    done = subprocess.run(
        [*deployment.command, *command],
        env=deployment.env,
        preexec_fn=partial(resource.setrlimit, resource.RLIMIT_FSIZE, (0, 0)),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert str(deployment.state) in done.stderr


def test_a_file_that_has_no_room_is_not_replaced_by_half_of_it(tmp_path: Path) -> None:
    file = tmp_path / "file"
    write_private(file, b"old")
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4, hard))
    try:
        with pytest.raises(OSError, match="too large"):
            write_private(file, b"brand new")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    assert file.read_bytes() == b"old\n"
    assert list(tmp_path.iterdir()) == [file]
