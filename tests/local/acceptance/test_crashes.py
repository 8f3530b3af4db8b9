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

AT_ONCE = 20
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


def counted(deployment: Deployment, story: Story, ttl: int) -> int:
    """How many port calls the story makes."""
    deployment.start(CRASH_AT="0")
    assert story(deployment, ttl).status_code in (201, 204)
    time.sleep(0.5)
    return len((deployment.state / "calls").read_text().splitlines())


def crashed(deployment: Deployment, story: Story, at: int, ttl: int) -> float:
    """Tell the story until the router dies in it, then start a router again; when it died."""
    deployment.start(CRASH_AT=str(at))
    with ExitStack() as stack:
        stack.callback(deployment.host.delete, "/_host/faults")
        with suppress(httpx.TransportError):
            story(deployment, ttl)
        assert deployment.ended(10) == -9, f"no crash at call {at}"
    died = time.monotonic()
    deployment.start()
    return died


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
    if box["state"] == "running":
        assert alive(deployment) == [box["instance_id"]]
    deployment.destroy(made)
    assert alive(deployment) == []
    listed = deployment.api.get("/v1/sandboxes", params=EVERYTHING).json()["data"]
    assert [one["id"] for one in listed] == [made]


def abandoned(deployment: Deployment, story: Story, at: int) -> None:
    died = crashed(deployment, story, at, TTL)
    time.sleep(max(0.0, died + TTL - time.monotonic()))
    eventually(lambda: alive(deployment) == [], RECOVERY, every=0.2)

    def states() -> set[str]:
        listed = deployment.api.get("/v1/sandboxes", params=EVERYTHING).json()["data"]
        return {one["state"] for one in listed}

    eventually(lambda: states() <= {"destroyed", "failed"}, RECOVERY, every=0.2)


Then = Callable[[Deployment, Story, int], None]


def every_point(deploy: Deploy, then: Then, points: list[tuple[Story, int]]) -> None:
    made = [(deploy(), *point) for point in points]
    with ThreadPoolExecutor(AT_ONCE) as threads:
        jobs = {
            f"{story.__name__} {at}": threads.submit(then, deployment, story, at)
            for deployment, story, at in made
        }
    failed = {name: job.exception() for name, job in jobs.items() if job.exception()}
    assert failed == {}, f"of {len(jobs)} points: {failed}"


def all_points(deploy: Deploy, ttl: int, *stories: Story) -> list[tuple[Story, int]]:
    """Every call of every story; those of the plain create only once."""
    fresh = [deploy() for _ in stories]
    with ThreadPoolExecutor(AT_ONCE) as threads:
        totals = list(threads.map(counted, fresh, stories, [ttl] * len(stories)))
    assert totals[0] >= 3
    assert all(total > totals[0] for total in totals[1:])
    found = [(stories[0], n + 1) for n in range(totals[0])]
    for story, total in zip(stories[1:], totals[1:], strict=True):
        found += [(story, n + 1) for n in range(_first(story, totals[0]), total)]
    return found


def _first(story: Story, plain: int) -> int:
    return 0 if story is create_and_fail_over else plain


@pytest.mark.case("A21")
def test_a_retry_after_any_crash_finds_one_sandbox(deploy: Deploy) -> None:
    stories = (create, create_and_fail_over, create_and_destroy)
    every_point(deploy, retried, all_points(deploy, LONG, *stories))


@pytest.mark.case("A21")
def test_without_a_retry_nothing_is_left_after_the_lifetime(deploy: Deploy) -> None:
    points = all_points(deploy, TTL, create, create_and_fail_over)
    plain = sum(story is create for story, _ in points)
    # Counting these takes a lifetime. That many there are: claim, save, destroy, look, save.
    points += [(create_and_expire, plain + 1 + n) for n in range(5)]
    every_point(deploy, abandoned, points)
