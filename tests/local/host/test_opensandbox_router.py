"""The Router over an E2B and an OpenSandbox pool on a real host: settled, failed over, gone."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from adapters import providers
from adapters.system import SystemClock, SystemIds
from sandbox_router.lifecycle.create import CreateRequest
from sandbox_router.lifecycle.once import Reply
from sandbox_router.model.naming import ACCOUNT, IDENTITY, NAMESPACE, SANDBOX_ID, TENANT
from sandbox_router.model.pool import Pool, Prepared
from sandbox_router.model.record import Outcome
from sandbox_router.model.sandbox import Sandbox, State
from sandbox_router.model.secret import Secret
from sandbox_router.model.size import Shape
from sandbox_router.model.spec import Cargo, Isolation, Preferences, Spec
from sandbox_router.ports import Command, Exit, Output
from sandbox_router.router import Router
from sandbox_router.store import Store
from tests.fakes.objects import MemoryObjects
from tests.fakes.queue import MemoryQueue
from tests.fakes.table import MemoryTable
from tests.fakes.vault import FakeVault
from tests.local.host.hosting import Host, until
from tests.unit.functions.world import FakePools

pytestmark = pytest.mark.xdist_group("opensandbox-host")
KEYS = {"alpha": "e2b_router", "gamma": "opensandbox_router"}
CONFIG = {
    "accounts": [
        {"name": "alpha", "dialect": "e2b", "key": KEYS["alpha"]},
        {"name": "gamma", "dialect": "opensandbox", "key": KEYS["gamma"]},
    ]
}
ONE = Shape.of(1, 1)
TENANT_NAME = "t" * 128  # no label of 63 characters holds it


class Deployment:
    """One Router over both pools, gamma first, and its worker, which runs while a test waits."""

    def __init__(self, host: Host, settle: int = 3) -> None:
        self.host = host
        accounts, pools = {}, []
        for position, (name, kind) in enumerate((("gamma", "opensandbox"), ("alpha", "e2b"))):
            loaded = providers.load(kind)
            url = f"{host.url}/{kind}"
            settings = {"api_url": url}
            if kind == "e2b":
                settings["sandbox_url"] = f"{url}/sandbox"
            accounts[name] = loaded.build(loaded.profile, Secret(KEYS[name]), settings)
            quick = replace(loaded.profile.naming, list_lag=1, window=8, settle=settle)
            pools.append(
                Pool(
                    name,
                    replace(loaded.profile, naming=quick),
                    position,
                    isolation=Isolation.CONTAINER,
                    images={"default": (Prepared("base-1x1", ONE),)} if kind == "e2b" else {},
                    any_size={"default": "python:3.12"} if kind == "opensandbox" else {},
                )
            )
        self.accounts = accounts
        self.clock, ids, table = SystemClock(), SystemIds(), MemoryTable()
        self.queue = MemoryQueue(self.clock)
        self.store = Store(table, self.clock, ids)
        self.router = Router(
            table=table,
            queue=self.queue,
            pools=FakePools(*pools, accounts=accounts),
            vault=FakeVault(),
            objects=MemoryObjects(),
            clock=self.clock,
            ids=ids,
            deployment="a deployment",
            pepper=Secret("pepper" * 6),
        )

    def create(self, wait: float = 20, env: dict[str, str] | None = None, **spec: Any) -> Reply:
        env = env or {}
        wanted = Spec(**{"shape": ONE, "ttl_seconds": 60, "env_names": tuple(env), **spec})
        cargo = Cargo({name: Secret(value) for name, value in env.items()})
        request = CreateRequest(wanted, b"body", "req-1", cargo)
        return self.router.create(TENANT_NAME, request, wait_seconds=wait)

    def created(self, **spec: Any) -> Sandbox:
        reply = self.create(**spec)
        assert reply.status == 201, reply.body
        assert reply.record_id is not None
        return self.box(reply.record_id)

    def box(self, sandbox_id: str) -> Sandbox:
        found = self.store.load(Sandbox, sandbox_id)
        assert found is not None
        return found

    def until(self, condition: Callable[[], object], seconds: float) -> None:
        """Work off the queue until it is so."""

        def check() -> object:
            now = self.clock.now()
            for queue in ("teardown", "create"):
                for message in self.queue.receive(queue, 10, 30, now):
                    self.router.advance(message.record_id)
                    self.queue.done(message)
            return condition()

        until(check, seconds)

    def at(self, account: str) -> list[dict[str, Any]]:
        return self.host.instances(account=account)

    def alive(self, account: str) -> list[dict[str, Any]]:
        return [one for one in self.at(account) if one["state"] != "gone"]

    def run(self, box: Sandbox, text: str, **options: Any) -> tuple[bytes, Exit]:
        items = list(self.router.run(TENANT_NAME, box.id, Command(shell=text, **options)))
        end = items.pop()
        assert isinstance(end, Exit)
        return b"".join(item.data for item in items if isinstance(item, Output)), end

    def gone(self, box: Sandbox) -> None:
        """Destroy it and see that nothing of it is left anywhere."""
        self.router.destroy(TENANT_NAME, box.id)
        self.until(lambda: self.box(box.id).state is State.DESTROYED, 15)
        self.until(lambda: self.box(box.id).settled, 15)
        mine = [one for name in KEYS for one in self.alive(name)]
        assert [one for one in mine if one["metadata"][SANDBOX_ID] == box.id] == []


@pytest.fixture(scope="module")
def one_host() -> Iterator[Host]:
    host = Host(config=CONFIG).started()
    yield host
    host.close()


@pytest.fixture
def there(one_host: Host, request: pytest.FixtureRequest) -> Iterator[Deployment]:
    made = Deployment(one_host, settle=getattr(request, "param", 3))
    yield made
    one_host.http.delete("/_host/faults")
    for one in one_host.instances():
        if one["state"] in ("running", "paused"):
            one_host.http.post(f"/_host/instances/{one['id']}/kill")
    for account in made.accounts.values():
        account.close()  # type: ignore[attr-defined]


def outcomes(box: Sandbox) -> list[tuple[str, Outcome]]:
    return [(attempt.pool_id, attempt.outcome) for attempt in box.attempts]


def test_a_sandbox_lives_its_whole_life_at_opensandbox(there: Deployment) -> None:
    box = there.created(env={"FROM_CREATE": "ü"}, labels={"team": "a"})
    assert outcomes(box) == [("gamma", Outcome.CREATED)]
    (instance,) = there.alive("gamma")
    tags = instance["metadata"]
    assert tags[SANDBOX_ID] == box.id
    assert tags[IDENTITY] == box.attempts[0].identity
    assert len(tags[ACCOUNT]) == len(tags[TENANT]) == len(tags[NAMESPACE]) == 52
    assert tags["team"] == "a"
    assert there.run(box, "printf $FROM_CREATE; exit 3") == ("ü".encode(), Exit(3))
    there.router.write_file(TENANT_NAME, box.id, "/tmp/x/y", b"\0\xff")
    assert there.router.read_file(TENANT_NAME, box.id, "/tmp/x/y", 10) == b"\0\xff"
    there.router.extend(TENANT_NAME, box.id, 600, shorten=False)
    assert there.alive("gamma")[0]["ends_ms"] > time.time() * 1000 + 500_000
    assert there.router.pause(TENANT_NAME, box.id, "disk").state is State.PAUSED
    assert there.router.resume(TENANT_NAME, box.id).state is State.RUNNING
    assert there.run(box, "cat /tmp/x/y | wc -c")[0].strip() == b"2"
    there.gone(box)


@pytest.mark.parametrize("fault", ["lost_answer", "made_503"])
def test_a_create_whose_answer_is_lost_ends_in_one_instance(there: Deployment, fault: str) -> None:
    there.host.order(account="gamma", op="create", fault=fault, times=1)
    before = len(there.at("gamma"))
    box = there.created(prefer=Preferences(only=("gamma",)))
    assert outcomes(box) == [("gamma", Outcome.ADOPTED)]
    assert box.attempts[0].asked == 1  # a second ask would make a second instance
    assert len(there.at("gamma")) == before + 1
    assert there.run(box, "echo here") == (b"here\n", Exit(0))
    there.gone(box)


@pytest.mark.parametrize("there", [8], indirect=True)  # seconds: more than one look fits in
def test_a_list_that_lags_is_asked_again_before_anybody_else_is(there: Deployment) -> None:
    there.host.order(account="gamma", op="create", fault="lost_answer", times=1)
    there.host.order(account="gamma", op="list", fault="list_lag", seconds=2)
    box = there.created()
    assert outcomes(box) == [("gamma", Outcome.ADOPTED)]
    assert there.alive("alpha") == []
    there.gone(box)


def test_what_comes_late_is_destroyed_and_never_handed_out(there: Deployment) -> None:
    there.host.order(account="gamma", op="create", fault="late", seconds=5, times=1)
    seen = len(there.at("gamma"))
    box = there.created()
    assert outcomes(box) == [("gamma", Outcome.UNKNOWN), ("alpha", Outcome.CREATED)]
    assert len(there.at("gamma")) == seen
    there.until(lambda: len(there.at("gamma")) == seen + 1, 6)
    there.until(lambda: there.box(box.id).attempts[0].outcome is Outcome.GONE, 15)
    assert there.alive("gamma") == []
    assert there.at("gamma")[-1]["gone_reason"] == "deleted"
    assert there.box(box.id).state is State.RUNNING
    assert there.run(box, "echo here")[0] == b"here\n"
    there.gone(box)


def test_an_attempt_that_never_was_is_given_up_after_its_window(there: Deployment) -> None:
    there.host.order(account="gamma", op="create", fault="error_503", times=1)
    box = there.created()
    assert outcomes(box) == [("gamma", Outcome.UNKNOWN), ("alpha", Outcome.CREATED)]
    there.until(lambda: there.box(box.id).attempts[0].outcome is Outcome.GONE, 20)
    there.gone(box)


@pytest.mark.parametrize("fault", ["capacity", "quota", "rate_limited", "unauthorized"])
def test_a_refusal_moves_on_at_once(there: Deployment, fault: str) -> None:
    there.host.order(account="gamma", op="create", fault=fault, times=1)
    began = time.monotonic()
    box = there.created()
    assert outcomes(box) == [("gamma", Outcome.REFUSED), ("alpha", Outcome.CREATED)]
    assert time.monotonic() - began < 2
    assert there.alive("gamma") == []
    there.gone(box)


def test_a_refusal_of_e2b_moves_on_to_opensandbox(there: Deployment) -> None:
    there.host.order(account="alpha", op="create", fault="capacity", times=1)
    box = there.created(prefer=Preferences(order=("alpha", "gamma")))
    assert outcomes(box) == [("alpha", Outcome.REFUSED), ("gamma", Outcome.CREATED)]
    there.gone(box)


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        ({"long": "v" * 64}, "labels:value_length"),
        ({"odd": "a b"}, "labels:value_syntax"),
        ({"opensandbox.io/id": "x"}, "labels:reserved_key"),
    ],
)
def test_a_label_that_does_not_fit_makes_the_pool_ineligible(
    there: Deployment, labels: dict[str, str], reason: str
) -> None:
    route = there.router.route(TENANT_NAME, Spec(ONE, labels=labels))
    assert [candidate.pool_id for candidate in route.candidates] == ["alpha"]
    (refused,) = route.refused
    assert (refused.pool_id, refused.reasons) == ("gamma", (reason,))
    box = there.created(labels=labels)
    assert outcomes(box) == [("alpha", Outcome.CREATED)]
    (instance,) = there.alive("alpha")
    assert labels.items() <= instance["metadata"].items()
    there.gone(box)


def test_a_size_and_an_image_nobody_prepared_are_served_where_any_is_given(
    there: Deployment,
) -> None:
    shape = Shape.of(0.5, 1.5)
    box = there.created(shape=shape, image="opensandbox:python:3.11")
    assert [c.pool_id for c in box.route] == ["gamma"]
    assert (box.route[0].reference, box.route[0].shape) == ("python:3.11", shape)
    assert there.alive("gamma")[0]["template"] == "python:3.11"
    there.gone(box)


def test_an_image_the_server_cannot_pull_is_the_clients_mistake(there: Deployment) -> None:
    reply = there.create(image="opensandbox:no/such:1")
    assert reply.status == 422
    assert "provider_rejected" in reply.body
    assert there.alive("gamma") == there.alive("alpha") == []
