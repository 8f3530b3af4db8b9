"""The same key again: what is answered, at every stage of the first request."""

from __future__ import annotations

import pytest

from sandbox_router.lifecycle.once import Reply
from sandbox_router.model.failure import KeyReused, PoolUnsupported, Unsupported
from sandbox_router.model.sandbox import State
from sandbox_router.model.spec import Preferences
from tests.fakes.weak import Weak
from tests.sim.world import TENANT
from tests.unit.core.scenes import NO_FALLBACK, Scene, body

DAY_MS = 86_400_000


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_a_finished_create_answers_the_same_bytes_and_calls_nobody(scene: Scene) -> None:
    first = scene.ask()
    scene.clock.sleep(40)
    calls, items = scene.calls(), scene.memory.items()
    again = scene.ask()
    assert (again.status, again.body, again.record_id) == (201, first.body, first.record_id)
    assert (first.replayed, again.replayed) == (False, True)
    assert (scene.calls(), scene.memory.items()) == (calls, items)


@pytest.mark.parametrize("change", ["destroy", "pause"])
def test_a_replay_is_the_first_answer_and_not_the_present_state(scene: Scene, change: str) -> None:
    first = scene.ask()
    getattr(scene.router, change)(TENANT, first.record_id)
    again = scene.ask()
    assert (again.status, again.body) == (201, first.body)


@pytest.mark.parametrize("wait", [0.0, 20.0])
def test_in_flight_is_202_with_the_same_sandbox_and_calls_nobody(scene: Scene, wait: float) -> None:
    replies: list[Reply] = []
    scene.vendor().on_create = lambda order: replies.append(scene.ask(wait=wait))
    first = scene.ask()
    (second,) = replies
    assert (second.status, second.replayed, second.retry_after) == (202, True, 1)
    assert (second.record_id, body(second)["state"]) == (first.record_id, "starting")
    assert [op for op, _ in scene.vendor().calls] == ["create"]


def test_a_create_nobody_has_begun_is_begun_by_the_one_who_asks_again(scene: Scene) -> None:
    first = scene.ask(wait=0)
    assert scene.calls() == 0
    again = scene.ask()
    assert (first.status, again.status, again.replayed) == (202, 201, True)
    assert again.record_id == first.record_id
    assert scene.ask().body == again.body


def other(scene: Scene) -> None:
    """Another body under the same key is refused, and reaches no provider."""
    calls, items = scene.calls(), scene.memory.items()
    with pytest.raises(KeyReused):
        scene.ask(ttl_seconds=60)
    assert (scene.calls(), scene.memory.items()) == (calls, items)


def test_another_body_is_refused_while_the_first_is_handed_over(scene: Scene) -> None:
    scene.ask(wait=0)
    other(scene)


@pytest.mark.case("A12")
def test_another_body_is_refused_while_the_first_is_with_the_provider(scene: Scene) -> None:
    scene.vendor().on_create = lambda order: other(scene)
    assert scene.ask().status == 201


@pytest.mark.case("A12")
@pytest.mark.parametrize("state", [State.RUNNING, State.PAUSED, State.DESTROYED])
def test_another_body_is_refused_when_the_first_ran(scene: Scene, state: State) -> None:
    id_ = scene.ask().record_id or ""
    if state is State.PAUSED:
        scene.router.pause(TENANT, id_)
    if state is State.DESTROYED:
        scene.router.destroy(TENANT, id_)
    assert scene.box().state is state
    other(scene)


def test_another_body_is_refused_when_the_first_was_refused(scene: Scene) -> None:
    scene.vendor().script("create", "forbidden")
    assert scene.ask().status == 403
    other(scene)


@pytest.mark.case("A12")
def test_another_body_is_refused_when_the_first_died_and_its_lease_is_over(scene: Scene) -> None:
    scene.crash_at = 6
    assert scene.create() is None
    scene.clock.sleep(31)
    other(scene)


def test_another_body_is_refused_even_when_no_pool_could_serve_it(scene: Scene) -> None:
    scene.ask()
    with pytest.raises(KeyReused):
        scene.ask(prefer=Preferences(only=("nobody",)))


def test_a_dead_workers_create_is_resumed_under_the_same_names_when_its_lease_is_over(
    scene: Scene,
) -> None:
    scene.crash_at = 6  # after the provider was called
    assert scene.create(ttl=3600) is None
    scene.clock.sleep(31)
    again = scene.create(ttl=3600)
    assert again is not None
    assert (again.status, again.replayed) == (201, True)
    assert [box.id for box in scene.boxes()] == [again.record_id]
    assert len(scene.living()) == 1
    assert len({subject for op, subject in scene.vendor().calls if op == "create"}) == 1


@pytest.mark.case("A9")
@pytest.mark.parametrize(
    ("fault", "status", "code"),
    [
        ("forbidden", 403, "provider_permission"),
        ("policy", 403, "provider_policy"),
        ("invalid", 422, "provider_rejected"),
    ],
)
def test_a_final_refusal_is_replayed_byte_for_byte(
    scene: Scene, fault: str, status: int, code: str
) -> None:
    scene.vendor().script("create", fault)
    first = scene.ask()
    calls = scene.calls()
    scene.clock.sleep(60)
    again = scene.ask()
    assert (first.status, body(first)["code"]) == (status, code)
    assert (again.status, again.body, again.replayed) == (status, first.body, True)
    assert scene.calls() == calls


def test_what_every_pool_calls_unsupported_is_replayed(scene: Scene) -> None:
    for vendor in (scene.vendor("alpha"), scene.vendor("beta")):
        vendor.answers["create"] = [PoolUnsupported()]
    first, again = scene.ask(), scene.ask()
    assert (first.status, body(first)["class"]) == (422, "unsupported")
    assert (again.body, again.replayed) == (first.body, True)


def test_a_503_of_settled_refusals_frees_the_key_at_once(scene: Scene) -> None:
    for vendor in (scene.vendor("alpha"), scene.vendor("beta")):
        vendor.script("create", "quota")
    first = scene.ask()
    assert (first.status, body(first)["code"]) == (503, "no_pool_available")
    again = scene.ask(ttl_seconds=60)  # even another body
    assert (again.status, again.replayed) == (201, False)
    assert again.record_id != first.record_id


def test_a_503_with_an_open_attempt_keeps_the_key_until_the_attempt_is_settled() -> None:
    scene = Scene(idempotent=False)
    scene.vendor("alpha").script("create", "cut")
    scene.vendor("beta").script("create", "quota")
    scene.ask(wait=0)
    first = scene.until(State.FAILED)
    assert not first.settled
    kept = scene.ask()
    assert (kept.status, kept.record_id, kept.retry_after) == (503, first.id, 5)
    other(scene)
    scene.on(600 + 30)
    assert scene.seen(first.id).settled
    again = scene.ask()
    assert (again.status, again.record_id == first.id) == (201, False)


def test_a_request_refused_before_anybody_was_asked_leaves_its_key_free(scene: Scene) -> None:
    with pytest.raises(Unsupported):
        scene.ask(image="nobody-has-it")
    assert scene.boxes() == []
    assert scene.ask().status == 201


def test_the_same_key_of_another_tenant_is_another_request(scene: Scene) -> None:
    mine, theirs = scene.ask(), scene.ask(tenant="else")
    assert (theirs.status, theirs.replayed) == (201, False)
    assert theirs.record_id != mine.record_id


def test_without_a_key_every_request_is_a_new_one(scene: Scene) -> None:
    assert scene.ask(None).record_id != scene.ask(None).record_id


def test_a_key_is_forgotten_a_day_after_its_sandboxs_deadline_and_not_before(scene: Scene) -> None:
    first = scene.ask(ttl_seconds=60)
    scene.settle()
    scene.clock.at(scene.box().expires_at + DAY_MS)
    assert scene.ask(ttl_seconds=60).record_id == first.record_id
    scene.clock.sleep(1)
    assert scene.ask(ttl_seconds=60).record_id != first.record_id


@pytest.mark.case("A13")
@pytest.mark.parametrize("fault", ["ok", "lost", "capacity", "forbidden"])
@pytest.mark.parametrize("moment", range(1, 14))
def test_two_first_requests_at_once_make_one_sandbox_wherever_they_interleave(
    moment: int, fault: str
) -> None:
    scene = Scene()
    scene.vendor().script("create", fault)
    replies: list[Reply] = []
    scene.between = lambda: replies.append(scene.ask())
    scene.moment = lambda point: scene.ticks == moment
    replies.append(scene.ask())
    done = {reply.body for reply in replies if reply.status != 202}
    assert len(done) == 1
    assert {reply.status for reply in replies} <= {202, 403 if fault == "forbidden" else 201}
    assert len({reply.record_id for reply in replies}) == 1
    assert len(scene.boxes()) == 1
    assert len(scene.living()) == (0 if fault == "forbidden" else 1)


@pytest.mark.parametrize("event", ["wish", "claim"])
def test_the_first_answer_is_the_kept_one_though_its_own_save_was_not_acknowledged(
    event: str,
) -> None:
    scene = Scene(weak={})
    weak = scene.weak
    assert isinstance(weak, Weak)
    weak.writes.extend(["ok", "lost"])  # the insert, the save of the result
    replies: list[Reply] = []

    def happens() -> None:
        id_ = scene.box().id
        scene.clock.sleep(10)
        if event == "claim":
            scene.router.pause(TENANT, id_)
        else:
            scene.router.get(TENANT, id_, refresh=True)
        replies.append(scene.ask())

    scene.between = happens
    scene.moment = lambda point: point == "table.write" and not weak.writes
    replies.append(scene.ask())
    assert [reply.status for reply in replies] == [201, 201]
    assert replies[0].body == replies[1].body == scene.ask().body


def test_a_create_without_fallbacks_frees_its_key_too(scene: Scene) -> None:
    scene.vendor().script("create", *["capacity"] * 3)
    assert scene.ask(prefer=NO_FALLBACK, wait=25).status == 503
    assert scene.ask(prefer=NO_FALLBACK).status == 201
