"""The router dies right before each of its port calls in turn; restart, retry, and nothing doubles.

Every point has processes and a folder of its own. How many points there are is counted first.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress

import httpx
import pytest

from tests.local.acceptance.conftest import Deploy
from tests.local.acceptance.deployment import Deployment, eventually

AT_ONCE = 8
TTL = 30
LONG = 300
RECOVERY = 10.0
SETTLED = 30.0
"""An attempt nobody can settle is given up after 20 s, and the next pool asked."""
EVERYTHING = {"state": "starting,running,destroying,destroyed,failed,lost"}
pytestmark = pytest.mark.slow


def create(deployment: Deployment, ttl: int) -> httpx.Response:
    """The same create every time: one key, one body."""
    return deployment.create("the-key", ttl_seconds=ttl, env={"A": "1"}, labels={"a": "b"})


def create_and_fail_over(deployment: Deployment, ttl: int) -> httpx.Response:
    with deployment.fault("capacity", account="alpha", op="create", times=1):
        return create(deployment, ttl)


def create_and_destroy(deployment: Deployment, ttl: int) -> httpx.Response:
    made = create(deployment, ttl)
    return deployment.api.delete(f"/v1/sandboxes/{made.json()['id']}")


def create_and_expire(deployment: Deployment, ttl: int) -> httpx.Response:
    made = create(deployment, ttl)
    assert deployment.router is not None
    router = deployment.router  # asking it over HTTP would count
    eventually(lambda: not alive(deployment) or router.poll() is not None, ttl + 15, 0.2)
    time.sleep(0.5)
    return made


Story = Callable[[Deployment, int], httpx.Response]


def points(deployment: Deployment, story: Story, ttl: int) -> int:
    """How many port calls the story makes."""
    deployment.start(CRASH_AT="0")
    assert story(deployment, ttl).status_code in (201, 204)
    time.sleep(0.5)
    return len((deployment.state / "calls").read_text().splitlines())


def crashed(deployment: Deployment, story: Story, at: int, ttl: int) -> None:
    """Tell the story until the router dies in it, then start a router again."""
    deployment.start(CRASH_AT=str(at))
    with ExitStack() as stack:
        stack.callback(deployment.host.delete, "/_host/faults")
        with suppress(httpx.TransportError):
            story(deployment, ttl)
        assert deployment.ended(10) == -9, f"no crash at call {at}"
    deployment.start()


def settled(deployment: Deployment) -> str:
    """Retry the create until it is settled: its sandbox, the only one."""
    answers = []

    def done() -> bool:
        answers.append(create(deployment, LONG))
        assert answers[-1].status_code in (201, 202), answers[-1].text
        return answers[-1].status_code == 201

    eventually(done, SETTLED, every=0.2)
    (made,) = {answer.json()["id"] for answer in answers}
    return str(made)


def alive(deployment: Deployment) -> list[str]:
    return [one["id"] for one in deployment.instances()]


def retried(deployment: Deployment, story: Story, at: int) -> None:
    crashed(deployment, story, at, LONG)
    made = settled(deployment)
    box = deployment.get(made)
    assert alive(deployment) == ([box["instance_id"]] if box["state"] == "running" else [])
    deployment.destroy(made)
    assert alive(deployment) == []
    listed = deployment.api.get("/v1/sandboxes", params=EVERYTHING).json()["data"]
    assert [one["id"] for one in listed] == [made]


def abandoned(deployment: Deployment, story: Story, at: int) -> None:
    began = time.monotonic()
    crashed(deployment, story, at, TTL)
    time.sleep(max(0.0, began + TTL - time.monotonic()))
    eventually(lambda: alive(deployment) == [], RECOVERY, every=0.2)

    def states() -> set[str]:
        listed = deployment.api.get("/v1/sandboxes", params=EVERYTHING).json()["data"]
        return {one["state"] for one in listed}

    eventually(lambda: states() <= {"destroyed", "failed"}, RECOVERY, every=0.2)


def every_point(
    deploy: Deploy, story: Story, ttl: int, then: Callable[[Deployment, Story, int], None]
) -> None:
    total = points(deploy(), story, ttl)
    assert total >= 3
    made = [deploy() for _ in range(total)]
    with ThreadPoolExecutor(AT_ONCE) as threads:
        jobs = [threads.submit(then, d, story, n + 1) for n, d in enumerate(made)]
    failed = {n + 1: job.exception() for n, job in enumerate(jobs) if job.exception()}
    assert failed == {}, f"of {total} points: {failed}"


@pytest.mark.parametrize("story", [create, create_and_fail_over, create_and_destroy])
def test_a_retry_after_any_crash_finds_one_sandbox(deploy: Deploy, story: Story) -> None:
    every_point(deploy, story, LONG, retried)


@pytest.mark.parametrize("story", [create, create_and_fail_over, create_and_expire])
def test_without_a_retry_nothing_is_left_after_the_lifetime(deploy: Deploy, story: Story) -> None:
    every_point(deploy, story, TTL, abandoned)
