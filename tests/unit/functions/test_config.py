"""Settings, the pools' file, and what wiring makes of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeVar

import pytest

from functions.edge import wiring
from functions.edge.config import EventSource, read, read_sources
from functions.edge.settings import BadSetting, Settings
from sandbox_router.model.failure import NotFound
from sandbox_router.model.size import parse
from sandbox_router.model.spec import Isolation

T = TypeVar("T")
KINDS = frozenset({"e2b", "other"})
KEY = "CANARY-key"
POOL: dict[str, Any] = {"id": "pool-a", "kind": "e2b", "key": KEY}
IMAGES = {"default": {"e2b": {"2x4": "base", "1x1": "small"}}}


def written(folder: Path, pools: Any = None, images: Any = None, **more: Any) -> Path:
    path = folder / "pools.json"
    rows = [POOL] if pools is None else pools
    data = {"pools": rows, "images": IMAGES if images is None else images, **more}
    path.write_text(json.dumps(data))
    return path


def test_a_toml_file_says_the_same(tmp_path: Path) -> None:
    path = tmp_path / "pools.toml"
    path.write_text(
        """
        [[pools]]
        id = "pool-a"
        kind = "e2b"
        key_file = "a.key"
        region = "us-west-2"
        isolation = "container"
        max_ttl_seconds = 600
        api_url = "http://127.0.0.1:9"
        [[pools]]
        id = "pool-b"
        kind = "e2b"
        key_env = "B_KEY"
        [images.default.e2b]
        "2x4" = "base"
        [images.default.pool-b]
        "2x4" = "base-b"
        "1x1" = "small-b"
        """
    )
    (tmp_path / "a.key").write_text(f"  {KEY}\n")
    a, b = read(path, KINDS, {"B_KEY": "b"})
    assert (a.key.reveal(), b.key.reveal()) == (KEY, "b")
    assert (a.region, a.isolation, a.max_ttl_seconds) == ("us-west-2", Isolation.CONTAINER, 600)
    assert a.settings == {"api_url": "http://127.0.0.1:9"}
    assert [p.reference for p in a.images["default"]] == ["base"]
    assert {p.shape.name: p.reference for p in b.images["default"]} == {
        "2x4": "base-b",
        "1x1": "small-b",
    }
    assert a.images["default"][0].shape == parse("2x4")[0]
    assert KEY not in repr(a)


BAD: list[tuple[dict[str, Any], str]] = [
    ({"pools": {}}, "pools must be a list"),
    ({"pools": ["x"]}, "pools[0] must be an object"),
    ({"pools": [{**POOL, "id": ""}]}, "pools[0].id must be a text"),
    ({"pools": [{**POOL, "id": "A b"}]}, "pools[0].id must be lower-case"),
    ({"pools": [POOL, POOL]}, "pools[1].id 'pool-a' is there twice"),
    ({"pools": [{**POOL, "id": "e2b"}]}, "is the name of a kind"),
    ({"pools": [{**POOL, "kind": "e2"}]}, "known are: e2b, other"),
    ({"pools": [{"id": "p", "kind": "e2b"}]}, "exactly one of key, key_env and key_file"),
    ({"pools": [{**POOL, "key_env": "X"}]}, "exactly one of key, key_env and key_file"),
    ({"pools": [{**POOL, "key": " "}]}, "pools[0].key must be a text"),
    ({"pools": [{"id": "p", "kind": "e2b", "key_env": "X"}]}, "pools[0].key_env leads to no key"),
    ({"pools": [{"id": "p", "kind": "e2b", "key_file": "no"}]}, "cannot be read"),
    ({"pools": [{**POOL, "region": 5}]}, "pools[0].region must be of type str"),
    ({"pools": [{**POOL, "max_ttl_seconds": True}]}, "pools[0].max_ttl_seconds must be of type"),
    ({"pools": [{**POOL, "max_ttl_seconds": 0}]}, "pools[0].max_ttl_seconds must be at least 1"),
    ({"pools": [{**POOL, "isolation": "vm"}]}, "pools[0].isolation must be one of process"),
    ({"pools": [{**POOL, "draining": "no"}]}, "pools[0].draining must be of type bool"),
    ({"pools": [{**POOL, "api_url": 1}]}, "pools[0].api_url must be a text"),
    ({"images": {}}, "images.default maps neither 'pool-a' nor its kind 'e2b'"),
    ({"images": []}, "images must be an object"),
    ({"images": {"default": {"e2": {}}}}, "images.default.e2 is neither a pool of this file"),
    ({"images": {"default": {"e2b": {"big": "x"}}}}, "images.default.e2b.big is no size"),
    ({"images": {"default": {"e2b": {"2x4:cheap": "x"}}}}, "is no size"),
    ({"images": {"default": {"e2b": {"2x4": ""}}}}, "images.default.e2b.2x4 must be a text"),
    ({"regions": []}, "regions is none of"),
]


@pytest.mark.parametrize(("change", "says"), BAD, ids=range(len(BAD)))
def test_a_bad_file_is_named_with_the_place(
    tmp_path: Path, change: dict[str, Any], says: str
) -> None:
    path = written(tmp_path, **change)
    with pytest.raises(BadSetting) as caught:
        read(path, KINDS, {})
    assert says in str(caught.value)
    assert str(path) in str(caught.value)
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("pools.json", "{", "line 1, column 2"),
        ("pools.json", "[]", "must be an object"),
        ("pools.toml", f"[[pools]]\nkey = {KEY}", "line 2"),
        ("pools.json", None, "cannot be read"),
    ],
)
def test_a_file_that_is_none(tmp_path: Path, name: str, text: str | None, says: str) -> None:
    path = tmp_path / name
    if text is not None:
        path.write_text(text)
    with pytest.raises(BadSetting, match=says) as caught:
        read(path, KINDS, {})
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    "env", [{"BACKEND": "mars"}, {"MAX_TTL_SECONDS": "x"}, {"MAX_TTL_SECONDS": "5"}]
)
def test_a_bad_variable_is_named(env: dict[str, str]) -> None:
    with pytest.raises(BadSetting, match=next(iter(env))):
        Settings.of(env)


def test_settings_follow_the_state_folder() -> None:
    found = Settings.of({"STATE": "/s", "POOLS": "/p.toml", "X_KEY": KEY})
    assert found.table_file == Path("/s/router.db")
    assert found.pools_file == Path("/p.toml")
    assert found.pepper_file == Path("/s/pepper")
    assert KEY not in repr(found)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    written(tmp_path, [{**POOL, "api_url": "http://127.0.0.1:9"}])
    (tmp_path / "pepper").write_text("p" * 32)
    return Settings(state=tmp_path)


def test_wiring_builds_a_router_of_the_pools(settings: Settings) -> None:
    wrapped: list[str] = []

    class Wrap:
        def __call__(self, port: T, /) -> T:
            wrapped.append(type(port).__name__)
            return port

    router = wiring.build(settings, Wrap())
    (pool,) = router.pools()
    assert (pool.id, pool.kind, pool.isolation) == ("pool-a", "e2b", Isolation.MICROVM)
    assert wrapped == ["SqliteTable", "SqliteQueue", "FolderObjects"]
    pools = wiring.ConfiguredPools(settings, Wrap())
    assert pools.provider("pool-a") is pools.provider("pool-a")
    assert wrapped[3:] == ["E2B"]
    for lookup in (pools.pool, pools.provider):
        with pytest.raises(NotFound):
            lookup("pool-x")


def test_a_setting_the_kind_does_not_know_is_refused(settings: Settings) -> None:
    path = written(settings.state, [{**POOL, "regoin": "us"}])
    with pytest.raises(BadSetting, match=r"'pool-a': settings\.regoin") as caught:
        wiring.build(settings)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("pepper", [None, "", "short"])
def test_a_pepper_must_be_there(settings: Settings, pepper: str | None) -> None:
    (settings.state / "pepper").unlink()
    if pepper is not None:
        (settings.state / "pepper").write_text(pepper)
    with pytest.raises(BadSetting, match="pepper"):
        wiring.build(settings)


def test_one_process_has_one_router(settings: Settings) -> None:
    wiring.use(wiring.build, settings)
    try:
        assert wiring.router() is wiring.router()
        assert wiring.settings() is settings
    finally:
        wiring.use(wiring.build)


SOURCE = {"tenant": "acme", "scopes": ["sandboxes:write"]}


def test_event_sources_are_whose_and_what_they_may(tmp_path: Path) -> None:
    rows = {"acme.orders": SOURCE, "b": {**SOURCE, "account": "123456789012"}}
    path = written(tmp_path, event_sources=rows)
    scopes = frozenset({"sandboxes:write"})
    assert read_sources(path) == {
        "acme.orders": EventSource("acme", scopes),
        "b": EventSource("acme", scopes, "123456789012"),
    }
    assert len(read(path, KINDS, {})) == 1
    assert read_sources(written(tmp_path)) == {}


@pytest.mark.parametrize(
    ("rows", "where"),
    [
        ([], "event_sources must be"),
        ({"a": 5}, "event_sources.a must be"),
        ({"a": {**SOURCE, "tenant": ""}}, "event_sources.a.tenant"),
        ({"a": {"tenant": "acme"}}, "event_sources.a.scopes"),
        ({"a": {**SOURCE, "scopes": []}}, "event_sources.a.scopes"),
        ({"a": {**SOURCE, "scopes": ["admin"]}}, "event_sources.a.scopes"),
        ({"a": {**SOURCE, "scopes": [["x"]]}}, "event_sources.a.scopes"),
        ({"a": {**SOURCE, "account": 5}}, "event_sources.a.account"),
        ({"a": {**SOURCE, "key": 5}}, "event_sources.a.key is not known"),
        ({"sandbox-router": SOURCE}, "event_sources.sandbox-router"),
    ],
)
def test_wrong_event_sources_are_named(tmp_path: Path, rows: Any, where: str) -> None:
    with pytest.raises(BadSetting, match=where):
        read_sources(written(tmp_path, event_sources=rows))
