"""Short traces that a whole class of faults would break: hunters of mutants, and tests as well."""

from __future__ import annotations

from sandbox_router.model.failure import Failure, NotFound
from tests.fakes.weak import Fault, Weak
from tests.sim.world import TENANT, World

HOUR = 3_600


def another_body_under_a_key_is_refused_at_every_stage() -> None:
    world = World(limits=False)
    world.rival = (5, lambda: _refused(world))
    world.create()
    _refused(world)
    world.settle()
    world.check_end()


def _refused(world: World) -> None:
    made = len(world.living())
    reply = world.create(ttl=60, router=world.process())
    assert reply is not None
    assert reply.status == 422, f"I4: {reply.status} for another body"
    assert len(world.living()) == made, "I4: another body reached a provider"


def two_tenants_share_a_key_and_nothing_else() -> None:
    world = World(limits=False)
    mine = world.create()
    theirs = world.create(tenant="other")
    assert mine is not None
    assert theirs is not None
    assert mine.record_id != theirs.record_id, "I6: one sandbox for two tenants"
    try:
        world.router.destroy("other", mine.record_id or "")
    except NotFound:
        pass
    else:
        raise AssertionError("I6: another tenant's sandbox could be destroyed")
    world.settle()
    world.check_end()


def a_replay_is_the_first_answer_whatever_has_happened_since() -> None:
    world = World(limits=False)
    world.create()
    world.clock.sleep(50)
    world.create()
    world.settle()
    world.create()
    world.check_end()


def a_guard_moves_with_the_deadline() -> None:
    world = World(limits=False, nets=frozenset({"guard"}))
    reply = world.create(ttl=60)
    assert reply is not None
    box = world.router.extend(TENANT, reply.record_id or "", HOUR, shorten=False)
    guard = world.memory.get((f"GUARD#{box.id}", "A"))
    assert guard is not None
    assert int(str(guard["ttl"])) * 1000 > box.expires_at, "the guard stayed where it was"
    world.run_until(world.clock.now() + 2 * HOUR * 1000)
    assert world.living() == [], "I9: the guard alone left an instance"


def a_guard_comes_again_until_it_is_over() -> None:
    world = World(limits=False, nets=frozenset({"guard"}))
    world.create(ttl=60)
    world.providers["alpha"].script("destroy", "cut", "outage")
    world.run_until(world.clock.now() + HOUR * 1000)
    assert world.living() == [], "I9: the guard alone left an instance"


def labels_written_during_a_create_are_kept() -> None:
    world = World(limits=False)

    def relabel() -> None:
        (box,) = world.boxes()
        world.process().relabel(TENANT, box.id, {"a": "b"})

    world.rival = (6, relabel)
    world.create()
    (box,) = world.boxes()
    assert box.labels == {"a": "b"}, "a save took anybody's labels back"
    assert box.state == "running"


def a_key_that_was_freed_and_taken_is_not_freed_again() -> None:
    """The save that frees the key is lost, and repeated when another create has taken the key."""
    world = World(limits=False, weak={})
    assert isinstance(world.weak, Weak)
    for provider in world.providers.values():
        provider.script("create", "quota")
    world.create("k0")
    saves, calls = world.points.count("table.write"), len(world.points)
    world.clock.sleep(HOUR)
    for provider in world.providers.values():
        provider.script("create", "quota")
    well: list[Fault] = ["ok"] * (saves - 1)
    world.weak.writes.extend([*well, "lost"])
    again = len(world.points) + calls
    world.rival = (again, lambda: took.append(world.create(router=world.process())))
    took: list[object] = []
    world.create()
    world.create()
    assert took, "the trace is another one"
    running = [box.id for box in world.boxes() if box.state == "running"]
    assert len(running) == 1, "I1: two sandboxes of a key"
    world.settle()
    world.check_end()


def an_unknown_create_is_asked_twice_at_most() -> None:
    world = World(limits=False)
    world.providers["alpha"].script("create", *["cut"] * 9)
    world.create(wait=25)
    world.settle()
    world.check_end()


def one_look_that_finds_nothing_loses_no_sandbox() -> None:
    world = World(limits=False, lag_ms=5_000)
    reply = world.create(ttl=HOUR)
    assert reply is not None
    world.providers["alpha"].script("get", "absent")
    world.router.get(TENANT, reply.record_id or "", refresh=True)
    world.run_until(world.clock.now() + 60_000)
    (box,) = world.boxes()
    assert box.state == "running", "I14: lost by one look"


def a_destroyed_sandbox_is_past_all_wishes() -> None:
    world = World(limits=False)
    reply = world.create()
    assert reply is not None
    id_ = reply.record_id or ""
    world.destroy(id_)
    world.settle()
    for wish in (world.router.pause, world.router.resume, world.router.destroy):
        try:
            wish(TENANT, id_)
        except Failure:
            continue
    world.settle()
    assert world.boxes()[0].state == "destroyed", "I15: out of a state without a way out"
    world.check_end()


STORIES = (
    another_body_under_a_key_is_refused_at_every_stage,
    two_tenants_share_a_key_and_nothing_else,
    a_replay_is_the_first_answer_whatever_has_happened_since,
    a_guard_moves_with_the_deadline,
    a_guard_comes_again_until_it_is_over,
    labels_written_during_a_create_are_kept,
    a_key_that_was_freed_and_taken_is_not_freed_again,
    an_unknown_create_is_asked_twice_at_most,
    one_look_that_finds_nothing_loses_no_sandbox,
    a_destroyed_sandbox_is_past_all_wishes,
)
