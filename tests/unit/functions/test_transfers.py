"""Files through URLs, by the handlers: what is answered, what is refused, how long it may take."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from functions import catalog
from functions.edge import wiring
from sandbox_router.model.failure import StoreBusy, Unknown
from sandbox_router.model.view import timestamp
from sandbox_router.session import transfers
from tests.unit.functions.world import Got, World, on

DATA = b"\0\xff" * 5000


@pytest.fixture
def box(world: World) -> str:
    return world.created()


def offered(box: str, **body: Any) -> dict[str, Any]:
    got = on("offer_upload", box, body={"path": "/tmp/a", **body})
    assert got.status == 201, got.text
    found: dict[str, Any] = got.json
    return found


def taken(box: str, upload_id: str, **given: Any) -> Got:
    return on("take_upload", box, path={"upload_id": upload_id}, **given)


def test_an_upload_is_a_request_to_make_and_an_id_to_take_it_by(world: World, box: str) -> None:
    offer = offered(box, size_bytes=len(DATA))
    upload_id, url = offer.pop("upload_id"), offer.pop("url")
    ends = timestamp(world.clock.now() + 3_600_000)
    assert offer == {"method": "PUT", "headers": {}, "expires_at": ends}
    assert world.objects.signed[0][::2] == ("PUT", 3600)
    world.put({"url": url}, DATA)
    got = taken(box, upload_id)
    assert (got.status, got.data) == (204, b"")
    assert world.first.files == {"/tmp/a": DATA}


@pytest.mark.parametrize("sign", ["a", "ü", "🚀", " ", "%"])
def test_a_long_path_has_an_id_a_gateway_takes(world: World, box: str, sign: str) -> None:
    path = "/" + sign * (4095 // len(sign.encode()))
    offer = offered(box, path=path, size_bytes=len(DATA))
    assert len(offer["upload_id"]) < 8000
    world.put(offer, DATA)
    assert taken(box, offer["upload_id"]).status == 204
    assert world.first.files == {path: DATA}


def test_a_path_whose_id_would_be_too_long_is_refused(world: World, box: str) -> None:
    for name in ('"' * 4000, "\\" * 4000, "\x01" * 1500):
        got = on("offer_upload", box, body={"path": f"/{name}"})
        assert (got.status, got.code) == (400, "invalid_request")
        assert [error["path"] for error in got.json["field_errors"]] == ["path"]
    assert world.objects.signed == []


def test_a_download_is_a_request_to_make(world: World, box: str) -> None:
    world.first.files["/tmp/a"] = DATA
    got = on("offer_download", box, body={"path": "/tmp/a"})
    assert got.status == 201
    answer = got.json
    assert set(answer) == {"url", "method", "headers", "size_bytes", "expires_at"}
    assert (answer["method"], answer["size_bytes"]) == ("GET", len(DATA))
    assert list(world.objects.kept.values()) == [DATA]


def test_what_is_not_there_is_told_apart(world: World, box: str) -> None:
    missing = on("offer_download", box, body={"path": "/none"})
    assert (missing.status, missing.code) == (404, "file_not_found")
    early = taken(box, offered(box)["upload_id"])
    assert (early.status, early.code) == (404, "upload_not_found")
    assert early.json["outcome"] == "none"
    forged = taken(box, "upl-" + "A" * 40)
    assert forged.data == early.data
    shapeless = taken(box, "upl-?")
    assert (shapeless.status, shapeless.code) == (404, "not_found")


BAD: list[tuple[str, Any, str]] = [
    ("offer_upload", {}, "path"),
    ("offer_upload", {"path": "a"}, "path"),
    ("offer_upload", {"path": "/"}, "path"),
    ("offer_upload", {"path": "/tmp/../a"}, "path"),
    ("offer_upload", {"path": "/a", "size_bytes": -1}, "size_bytes"),
    ("offer_upload", {"path": "/a", "size_bytes": "1"}, "size_bytes"),
    ("offer_upload", {"path": "/a", "size_bytes": transfers.LARGEST + 1}, "size_bytes"),
    ("offer_upload", {"path": "/a", "size": 1}, "size"),
    ("offer_download", {}, "path"),
    ("offer_download", {"path": "/a", "size_bytes": 1}, "size_bytes"),
    ("offer_download", {"path": "/\n"}, "path"),
]


@pytest.mark.parametrize(("name", "body", "field"), BAD)
def test_what_is_wrong_is_named(world: World, box: str, name: str, body: Any, field: str) -> None:
    got = on(name, box, body=body)
    assert (got.status, got.code) == (400, "invalid_request")
    assert [error["path"] for error in got.json["field_errors"]] == [field]
    assert (world.objects.kept, world.objects.signed) == ({}, [])


def test_taking_has_no_fields(world: World, box: str) -> None:
    got = taken(box, offered(box)["upload_id"], body={"path": "/etc/passwd"})
    assert (got.status, got.code) == (400, "invalid_request")


def test_too_large_is_413(world: World, box: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfers, "LARGEST", 9_999)
    world.first.files["/tmp/a"] = DATA
    got = on("offer_download", box, body={"path": "/tmp/a"})
    assert (got.status, got.code) == (413, "too_large")
    offer = offered(box)
    world.put(offer, DATA)
    assert taken(box, offer["upload_id"]).status == 413
    assert world.first.files == {"/tmp/a": DATA}


@pytest.mark.parametrize(("streaming", "seconds"), [(True, 237), (False, 26)])
def test_a_copy_may_take_as_long_as_somebody_waits(
    world: World,
    box: str,
    monkeypatch: pytest.MonkeyPatch,
    streaming: bool,
    seconds: int,
) -> None:
    wiring.use(lambda _: world.router, replace(wiring.settings(), streaming=streaming))
    world.first.files["/tmp/a"] = DATA
    real = world.objects.put

    def slow(key: str, pieces: Any) -> int:
        for _ in pieces:
            world.clock.sleep(1_000)
        return real(key, ())

    monkeypatch.setattr(world.objects, "put", slow)
    got = on("offer_download", box, body={"path": "/tmp/a"})
    assert (got.status, got.code) == (504, "too_slow")
    assert got.json["retryable"] is False
    assert f"After {seconds}" in got.json["detail"]
    assert catalog.http("offer_download").timeout == catalog.http("take_upload").timeout


@pytest.mark.parametrize("error", [StoreBusy(), Unknown()], ids=lambda error: error.code)
def test_a_failure_of_the_store_or_the_provider_is_its_problem(
    world: World,
    box: str,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
) -> None:
    def failing(*_: Any, **__: Any) -> Any:
        raise error

    monkeypatch.setattr(world.objects, "put", failing)
    monkeypatch.setattr(world.objects, "upload", failing)
    world.first.files["/tmp/a"] = DATA
    calls: list[Callable[[], Got]] = [
        lambda: on("offer_download", box, body={"path": "/tmp/a"}),
        lambda: on("offer_upload", box, body={"path": "/tmp/a"}),
    ]
    for call in calls:
        got = call()
        assert got.status == getattr(error, "status", 0)


def test_scopes_are_those_of_reading_and_writing(world: World, box: str) -> None:
    for name, scope in (("offer_download", "write"), ("offer_upload", "read")):
        got = on(name, box, body={"path": "/a"}, scopes=f"sandboxes:{scope}")
        assert (got.status, got.code) == (403, "forbidden")


def test_no_url_and_no_path_is_logged(world: World, box: str, logged: io.StringIO) -> None:
    world.first.files["/tmp/CANARY"] = b"CANARY"
    offer = offered(box, path="/tmp/CANARY")
    world.put(offer, b"CANARY")
    assert taken(box, offer["upload_id"]).status == 204
    assert on("offer_download", box, body={"path": "/tmp/CANARY"}).status == 201
    assert on("offer_download", box, body={"path": "/tmp/CANARY-2"}).status == 404
    assert logged.getvalue()
    for secret in ("CANARY", "objects.example", offer["upload_id"]):
        assert secret not in logged.getvalue()
