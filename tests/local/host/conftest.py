"""One host for the tests that leave no mark on it, and a maker of hosts for those that do."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.local.host.hosting import E2B, Host


@pytest.fixture(scope="session")
def shared_host() -> Iterator[Host]:
    host = Host().started()
    yield host
    host.close()


@pytest.fixture
def host(shared_host: Host) -> Iterator[Host]:
    """The shared host, without faults and without instances afterwards."""
    yield shared_host
    shared_host.http.delete("/_host/faults")
    for one in shared_host.instances():
        if one["state"] in ("running", "paused"):
            shared_host.http.post(f"/_host/instances/{one['id']}/kill")


@pytest.fixture
def new_host() -> Iterator[Callable[..., Host]]:
    """Starts hosts of the test's own."""
    made: list[Host] = []

    def make(*arguments: str, **options: object) -> Host:
        made.append(Host(*arguments, **options))  # type: ignore[arg-type]
        return made[-1].started()

    yield make
    for one in made:
        one.close()


@pytest.fixture
def alpha(host: Host) -> Iterator[E2B]:
    client = E2B(host)
    yield client
    client.close()


@pytest.fixture
def beta(host: Host) -> Iterator[E2B]:
    client = E2B(host, "beta")
    yield client
    client.close()
