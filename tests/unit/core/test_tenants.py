"""Lists and their cursors; and that one tenant's sandboxes are nobody else's."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from sandbox_router.lifecycle.snapshots import SnapshotRequest
from sandbox_router.model.failure import Invalid, NotFound
from sandbox_router.model.sandbox import Sandbox, State
from sandbox_router.model.secret import Secret
from sandbox_router.ports import Command
from sandbox_router.router import Filters, Router
from tests.fakes.weak import Weak
from tests.sim.world import TENANT
from tests.unit.core.scenes import Scene

DAY_S = 86_400
ALL = Filters(states=frozenset(State))


@pytest.fixture
def scene() -> Scene:
    return Scene()


def listed(
    scene: Scene, filters: Filters = ALL, *, limit: int = 3, tenant: str = TENANT
) -> list[str]:
    """Every id, page by page."""
    found: list[str] = []
    cursor: str | None = None
    while True:
        page, cursor = scene.router.list(tenant, filters, limit=limit, cursor=cursor)
        assert len(page) <= limit
        found.extend(box.id for box in page)
        if cursor is None:
            return found


def several(scene: Scene, count: int) -> list[str]:
    """New sandboxes a second apart, newest first."""
    made = []
    for n in range(count):
        made.append(scene.made(labels={"n": str(n % 2)}).id)
        scene.clock.sleep(1)
    return made[::-1]


@pytest.mark.parametrize("limit", [1, 3, 7, 8, 200])
def test_the_pages_together_hold_each_sandbox_once_newest_first(scene: Scene, limit: int) -> None:
    made = several(scene, 7)
    assert listed(scene, limit=limit) == made


def test_a_page_is_one_read_of_the_store_and_says_what_each_record_says(scene: Scene) -> None:
    made = several(scene, 5)
    before = len(scene.points)
    page, _ = scene.router.list(TENANT, ALL, limit=5, cursor=None)
    assert scene.points[before:] == ["table.query"]
    assert [bare(box) for box in page] == [bare(scene.seen(id_)) for id_ in made]


def bare(box: Sandbox) -> Sandbox:
    """Without what opens its instances, which no list holds."""
    attempts = tuple(replace(attempt, access=None) for attempt in box.attempts)
    return replace(box, attempts=attempts)


def test_a_record_an_older_writer_saved_is_listed_whole(scene: Scene) -> None:
    (id_,) = several(scene, 1)
    key = (f"SBX#{id_}", "A")
    kept = {k: v for k, v in (scene.memory.get(key) or {}).items() if k != "attempts"}
    scene.memory.replace(key, kept)
    page, _ = scene.router.list(TENANT, Filters(provider="fake"), limit=5, cursor=None)
    assert page == [scene.seen(id_)]


def test_short_pages_of_the_table_lose_nothing() -> None:
    scene = Scene(weak={})
    made = several(scene, 9)
    assert isinstance(scene.weak, Weak)
    scene.weak.short = 1.0
    assert listed(scene, limit=4) == made


def test_filters_choose_and_the_pages_stay_complete(scene: Scene) -> None:
    made = several(scene, 8)
    scene.router.destroy(TENANT, made[0])
    scene.router.pause(TENANT, made[1])
    assert listed(scene, Filters()) == made[1:]
    assert listed(scene, Filters(states=frozenset({State.PAUSED}))) == [made[1]]
    assert listed(scene, Filters(labels=(("n", "1"),))) == made[2::2]
    assert listed(scene, Filters(labels=(("n", "1"), ("n", "0")))) == []
    assert listed(scene, Filters(provider="fake")) == made[1:]
    assert listed(scene, Filters(provider="other")) == []
    since = scene.seen(made[3]).created_at
    assert listed(scene, Filters(created_after=since)) == made[1:4]


def test_a_page_of_things_filtered_out_is_short_and_not_the_end(scene: Scene) -> None:
    made = several(scene, 12)
    for id_ in made[:11]:
        scene.router.destroy(TENANT, id_)
    page, cursor = scene.router.list(TENANT, Filters(), limit=2, cursor=None)
    assert page == []
    assert cursor is not None
    assert listed(scene, Filters(), limit=2) == [made[11]]


def test_a_new_sandbox_between_two_pages_moves_nothing(scene: Scene) -> None:
    made = several(scene, 6)
    page, cursor = scene.router.list(TENANT, ALL, limit=3, cursor=None)
    scene.made()
    rest, _ = scene.router.list(TENANT, ALL, limit=3, cursor=cursor)
    assert [box.id for box in (*page, *rest)] == made


def a_cursor(scene: Scene) -> str:
    several(scene, 3)
    _, cursor = scene.router.list(TENANT, ALL, limit=1, cursor=None)
    assert cursor is not None
    return cursor


def decoded(cursor: str) -> bytes:
    return base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def flipped(cursor: str, at: int) -> str:
    data = bytearray(decoded(cursor))
    data[at] ^= 1
    return encoded(bytes(data))


@pytest.mark.parametrize(
    "forged",
    [
        lambda cursor: "",
        lambda cursor: "x",
        lambda cursor: "é",
        lambda cursor: "\ud800",
        lambda cursor: cursor[:-8],
        lambda cursor: cursor[8:],
        lambda cursor: flipped(cursor, 0),
        lambda cursor: flipped(cursor, 20),
        lambda cursor: flipped(cursor, -1),
        lambda cursor: encoded(b"\0" * 16 + b'[0,"x"]'),
        lambda cursor: encoded(decoded(cursor)[16:]),
    ],
)
def test_a_forged_cursor_is_invalid(scene: Scene, forged: Callable[[str], str]) -> None:
    cursor = forged(a_cursor(scene))
    with pytest.raises(Invalid) as refused:
        scene.router.list(TENANT, ALL, limit=1, cursor=cursor)
    assert refused.value.fields == (("cursor", "is not one of ours"),)


def test_another_tenants_cursor_is_invalid(scene: Scene) -> None:
    cursor = a_cursor(scene)
    with pytest.raises(Invalid):
        scene.router.list("else", ALL, limit=1, cursor=cursor)


def test_a_cursor_is_valid_for_a_day(scene: Scene) -> None:
    cursor = a_cursor(scene)
    scene.clock.sleep(DAY_S)
    assert scene.router.list(TENANT, ALL, limit=1, cursor=cursor)[0]
    scene.clock.sleep(0.001)
    with pytest.raises(Invalid):
        scene.router.list(TENANT, ALL, limit=1, cursor=cursor)


def test_a_cursor_outlives_the_process_that_gave_it(scene: Scene) -> None:
    cursor = a_cursor(scene)
    scene.boot()
    assert scene.router.list(TENANT, ALL, limit=1, cursor=cursor)[0]


CALLS: dict[str, Callable[[Router, str, str], Any]] = {
    "get": lambda r, t, i: r.get(t, i),
    "refresh": lambda r, t, i: r.get(t, i, refresh=True),
    "extend": lambda r, t, i: r.extend(t, i, 60, shorten=True),
    "relabel": lambda r, t, i: r.relabel(t, i, {}),
    "idle": lambda r, t, i: r.idle(t, i, 60),
    "destroy": lambda r, t, i: r.destroy(t, i),
    "pause": lambda r, t, i: r.pause(t, i),
    "resume": lambda r, t, i: r.resume(t, i),
    "run": lambda r, t, i: list(r.run(t, i, Command(shell="true"))),
    "read_file": lambda r, t, i: r.read_file(t, i, "/a", 1),
    "write_file": lambda r, t, i: r.write_file(t, i, "/a", b""),
    "remove_file": lambda r, t, i: r.remove_file(t, i, "/a"),
    "list_directory": lambda r, t, i: r.list_directory(t, i, "/"),
    "offer_download": lambda r, t, i: r.offer_download(t, i, "/a", seconds=60),
    "offer_upload": lambda r, t, i: r.offer_upload(t, i, "/a", None),
    "take_upload": lambda r, t, i: r.take_upload(t, i, "upl-x", seconds=60),
    "take_snapshot": lambda r, t, i: r.take_snapshot(
        t, i, SnapshotRequest("req", b""), wait_seconds=0
    ),
    "open_port": lambda r, t, i: r.open_port(t, i, 80),
    "close_port": lambda r, t, i: r.close_port(t, i, 80),
}


def test_every_call_that_names_a_sandbox_is_tried() -> None:
    """`advance` and `guard` are the workers' calls, and no tenant's."""
    named = {
        name
        for name, call in vars(Router).items()
        if not name.startswith("_") and "sandbox_id" in call.__annotations__
    }
    assert named - {"advance", "guard"} == set(CALLS) - {"refresh"}


@pytest.mark.parametrize("call", CALLS)
def test_another_tenants_sandbox_is_as_if_it_did_not_exist(scene: Scene, call: str) -> None:
    id_ = scene.made().id
    seen = []
    before, calls = scene.memory.items(), scene.calls()
    for tenant, name in (("else", id_), (TENANT, "sbx-" + "a" * 26)):
        points = len(scene.points)
        with pytest.raises(NotFound) as refused:
            CALLS[call](scene.router, tenant, name)
        seen.append((str(refused.value), refused.value.fields, scene.points[points:]))
    assert seen[0] == seen[1]
    assert (scene.memory.items(), scene.calls()) == (before, calls)


def test_a_list_shows_the_tenants_own_and_no_others(scene: Scene) -> None:
    mine = scene.made().id
    assert listed(scene, tenant="else") == []
    assert listed(scene) == [mine]


def test_a_key_is_known_by_its_hash_and_by_nothing_else(scene: Scene) -> None:
    key = Secret("CANARY-api-key")
    key_id = scene.router.add_key("acme", key, ["sandboxes:read"])
    principal = scene.router.authenticate(key)
    assert principal is not None
    assert (principal.tenant, principal.key_id) == ("acme", key_id)
    assert principal.scopes == {"sandboxes:read"}
    assert scene.router.authenticate(Secret("CANARY-api-kex")) is None
    assert "CANARY" not in repr(scene.memory.items())
