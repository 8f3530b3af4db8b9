"""Files of any size through objects: whole or not at all, once, in time, and nobody else's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import pytest

from sandbox_router.model.failure import (
    Failure,
    FileMissing,
    Gone,
    Invalid,
    NotRunning,
    Rejected,
    StoreBusy,
    TooLarge,
    TooSlow,
    Unknown,
    Unsupported,
    UploadMissing,
)
from sandbox_router.model.sandbox import State
from sandbox_router.ports import Content, Ref
from sandbox_router.session import transfers
from tests.fakes.clock import START
from tests.sim.world import TENANT
from tests.unit.core.scenes import Scene, Vendor

DATA, PATH, DAY = bytes(range(256)) * 40, "/tmp/a b/ü.bin", 86_400
PIECE = 1000


@dataclass
class Files(Vendor):
    """An account with files. `pace`: seconds a piece takes. `fails`: what a call ends with, half
    done.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    fails: dict[str, Failure] = field(default_factory=dict)
    pace: float = 0.0
    done: list[str] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)

    @contextmanager
    def read_file(self, ref: Ref, path: str, limit: int) -> Iterator[Iterator[bytes]]:
        if path not in self.files:
            raise FileMissing
        yield self._read(self.files[path], limit)

    def _read(self, data: bytes, limit: int) -> Iterator[bytes]:
        if len(data) > limit:
            raise TooLarge
        for at in range(0, len(data), PIECE):
            self.clock.sleep(self.pace)
            yield data[at : at + PIECE]
        if failure := self.fails.pop("read", None):
            raise failure

    def write_file(self, ref: Ref, path: str, content: Content) -> None:
        self.done.append("write")
        self.files[path] = b""
        for piece in content.pieces:
            self.clock.sleep(self.pace)
            self.files[path] += piece
        if failure := self.fails.pop("write", None):
            raise failure

    def move_file(self, ref: Ref, source: str, destination: str) -> None:
        self.done.append("move")
        self.sources.append(source)
        self.files[destination] = self.files.pop(source)
        if failure := self.fails.pop("move", None):
            raise failure

    def remove_file(self, ref: Ref, path: str) -> None:
        if self.files.pop(path, None) is None:
            raise FileMissing

    def list_directory(self, ref: Ref, path: str) -> tuple[()]:
        return ()


class There:
    """A sandbox with files, and its client."""

    def __init__(self, **spec: object) -> None:
        self.scene = Scene()
        self.id = self.scene.made(**spec).id
        inner = self.scene.vendor()
        self.files = Files("alpha", inner.clock, boxes=inner.boxes)
        self.scene.providers["alpha"] = self.files
        self.router, self.objects = self.scene.router, self.scene.objects

    def download(self, path: str = PATH, seconds: float = 60.0) -> transfers.Download:
        return self.router.offer_download(TENANT, self.id, path, seconds=seconds)

    def upload(self, path: str = PATH, size: int | None = None) -> transfers.Upload:
        return self.router.offer_upload(TENANT, self.id, path, size)

    def put(self, upload: transfers.Upload, data: bytes = DATA) -> None:
        """What a client does with the URL."""
        key = upload.request.url.removeprefix("https://objects.example/").partition("?")[0]
        assert upload.request.method == "PUT"
        self.objects.put(key, [data])

    def take(self, upload_id: str, seconds: float = 60.0) -> None:
        self.router.take_upload(TENANT, self.id, upload_id, seconds=seconds)


@pytest.fixture
def there() -> There:
    return There()


def test_a_download_is_the_file_as_it_is_behind_a_url(there: There) -> None:
    there.files.files[PATH] = DATA
    found = there.download()
    ((method, key, seconds, _),) = there.objects.signed
    assert there.objects.kept == {key: DATA}
    assert key.startswith(f"down/{TENANT}/{there.id}/")
    assert (method, seconds, found.size) == ("GET", 3600, len(DATA))
    assert found.expires_at == there.scene.clock.now() + 3_600_000
    assert found.request.url == f"https://objects.example/{key}?get"


def test_every_download_is_another_object(there: There) -> None:
    there.files.files[PATH] = DATA
    assert there.download().request.url != there.download().request.url


@pytest.mark.parametrize("failure", [Unknown(), Gone(), StoreBusy()], ids=lambda f: f.code)
def test_a_download_that_breaks_off_leaves_no_object(there: There, failure: Failure) -> None:
    there.files.files[PATH] = DATA
    there.files.fails["read"] = failure
    with pytest.raises(type(failure)):
        there.download()
    assert (there.objects.kept, there.objects.signed) == ({}, [])


def test_a_download_of_nothing_says_so(there: There) -> None:
    with pytest.raises(FileMissing):
        there.download("/none")


def test_an_upload_reaches_its_path_when_it_is_taken_and_not_before(there: There) -> None:
    upload = there.upload()
    ((method, key, seconds, size),) = there.objects.signed
    assert (method, seconds, size) == ("PUT", 3600, None)
    assert key.startswith(f"up/{TENANT}/{there.id}/")
    assert upload.id.startswith("upl-")
    there.put(upload)
    assert there.files.files == {}
    there.take(upload.id)
    assert there.files.files == {PATH: DATA}
    assert there.files.done == ["write", "move"]
    assert key not in there.objects.kept


@pytest.mark.parametrize(
    ("path", "folder"),
    [("/x", ""), ("/tmp/x", "/tmp"), ("/tmp/x/", "/tmp"), ("/a/./b/.", "/a"), ("//a//b", "//a")],
)
def test_a_file_is_written_beside_where_it_goes(there: There, path: str, folder: str) -> None:
    upload = there.upload(path)
    there.put(upload)
    there.take(upload.id)
    (aside,) = there.files.sources
    assert aside.startswith(f"{folder}/.")
    assert aside.endswith(".upload")
    assert aside.count("/") == folder.count("/") + 1


def test_an_upload_is_taken_once(there: There) -> None:
    upload = there.upload()
    there.put(upload)
    there.take(upload.id)
    there.files.files[PATH] = b"changed meanwhile"
    there.put(upload, b"put again")
    there.take(upload.id)
    assert there.files.files == {PATH: b"changed meanwhile"}


@pytest.mark.parametrize("data", [b"", b"x", DATA], ids=len)
def test_an_upload_of_a_said_size_has_it(there: There, data: bytes) -> None:
    upload = there.upload(size=len(data))
    assert there.objects.signed[0][3] == len(data)
    there.put(upload, data + b"!")  # as if nobody had looked at the signature
    with pytest.raises(Invalid):
        there.take(upload.id)
    there.put(upload, data)
    there.take(upload.id)
    assert there.files.files == {PATH: data}


def test_nothing_is_taken_before_it_is_there_or_after_a_day(there: There) -> None:
    early, late = there.upload("/early"), there.upload("/late")
    with pytest.raises(UploadMissing):
        there.take(early.id)
    there.put(early)
    there.put(late)
    there.scene.clock.sleep(DAY)
    there.take(early.id)
    there.scene.clock.sleep(1)
    with pytest.raises(UploadMissing):
        there.take(late.id)
    assert set(there.files.files) == {"/early"}


def test_an_id_that_is_not_ours_is_like_one_nothing_was_uploaded_for(there: There) -> None:
    upload = there.upload()
    there.put(upload)
    body = upload.id.removeprefix("upl-")
    forged = ["upl-", "upl-x", body[:-1], upload.id + "A", "upl-" + body[::-1]]
    for id_ in forged:
        with pytest.raises(UploadMissing):
            there.take(id_)
    assert there.files.done == []


def test_an_id_is_its_sandboxes(there: There) -> None:
    upload = there.upload()
    there.put(upload)
    second = there.scene.ask("k2").record_id or ""
    there.scene.providers["alpha"] = there.files
    with pytest.raises(UploadMissing):
        there.router.take_upload(TENANT, second, upload.id, seconds=60)


def test_a_tenants_name_is_no_path(there: There) -> None:
    box = there.scene.seen(there.id)
    keys = {transfers._key("up", box, "n")}
    for tenant in ("a/b", "a%2Fb", "..", "a b", "ü"):
        key = transfers._key("up", replace(box, tenant=tenant), "n")
        assert key.count("/") == 3
        keys.add(key)
    assert len(keys) == 6


@pytest.mark.parametrize("op", ["write", "move"])
@pytest.mark.parametrize("failure", [Unknown(), Rejected(), StoreBusy()], ids=lambda f: f.code)
def test_a_file_that_did_not_arrive_leaves_nothing_beside_it_and_is_taken_again(
    there: There, op: str, failure: Failure
) -> None:
    there.files.files[PATH] = b"before"
    upload = there.upload()
    there.put(upload)
    there.files.fails[op] = failure
    with pytest.raises(type(failure)):
        there.take(upload.id)
    assert set(there.files.files) == {PATH}
    assert there.files.files[PATH] in (b"before", DATA)
    there.take(upload.id)
    assert there.files.files == {PATH: DATA}


def test_a_lost_answer_of_the_store_at_the_end_is_repeated_safely(
    there: There, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload = there.upload()
    there.put(upload)
    real = there.objects.put

    def lost(key: str, pieces: object) -> int:
        real(key, pieces)  # type: ignore[arg-type]
        raise StoreBusy

    monkeypatch.setattr(there.objects, "put", lost)
    with pytest.raises(StoreBusy):
        there.take(upload.id)
    assert there.files.files == {PATH: DATA}
    monkeypatch.undo()
    there.files.files[PATH] = b"changed meanwhile"
    there.take(upload.id)  # its mark was kept
    assert there.files.files == {PATH: b"changed meanwhile"}


def test_a_copy_that_takes_too_long_ends_and_leaves_no_part(
    there: There, monkeypatch: pytest.MonkeyPatch
) -> None:
    there.files.files[PATH] = DATA
    there.files.pace = 1.0
    upload = there.upload("/x")
    with pytest.raises(TooSlow) as slow:
        there.download(seconds=5)
    assert "After 5 s only 0 MiB" in slow.value.detail
    assert there.objects.kept == {}
    there.put(upload)
    monkeypatch.setattr(there.objects, "read", _dribbling(there))
    with pytest.raises(TooSlow):
        there.take(upload.id, seconds=5)
    assert there.files.files == {PATH: DATA}


def test_a_copy_ends_early_enough_for_its_file_to_get_its_name(there: There) -> None:
    upload = there.upload()
    there.put(upload)
    there.files.pace = transfers.LAST_SECONDS + 0.5
    with pytest.raises(TooSlow):  # the second of two pieces comes after that
        there.take(upload.id, seconds=2 * transfers.LAST_SECONDS)
    there.take(upload.id, seconds=3 * transfers.LAST_SECONDS)
    assert there.files.files == {PATH: DATA}


def _dribbling(there: There) -> object:
    whole = there.objects.read

    @contextmanager
    def read(key: str) -> Iterator[Content]:
        with whole(key) as content:
            data = b"".join(content.pieces)
            yield Content(len(data), iter([data[at : at + 1] for at in range(len(data))]))

    return read


def test_what_is_too_large_is_said_before_anything_is_kept(
    there: There, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfers, "LARGEST", len(DATA) - 1)
    there.files.files[PATH] = DATA
    with pytest.raises(TooLarge):
        there.download()
    with pytest.raises(TooLarge):
        there.upload(size=len(DATA))
    assert (there.objects.kept, there.objects.signed) == ({}, [])
    upload = there.upload("/x")
    there.put(upload)
    with pytest.raises(TooLarge):
        there.take(upload.id)
    assert there.files.files == {PATH: DATA}


def test_a_long_copy_is_a_use_all_along() -> None:
    there = There(idle_seconds=60)
    there.files.files[PATH] = DATA
    there.files.pace = 10.0  # eleven pieces: longer than it may be idle
    there.download(seconds=900)
    assert there.scene.seen(there.id).active_at >= START + 90_000


def test_a_sandbox_that_is_gone_in_the_middle_of_a_copy_is_looked_at_once() -> None:
    there = There()
    there.files.files[PATH], there.files.fails["read"] = DATA, Gone()
    before = len(there.files.calls)
    with pytest.raises(Gone):
        there.download()
    assert [op for op, _ in there.files.calls[before:]] == ["get"]


def test_it_must_run_and_its_provider_must_have_files() -> None:
    scene = Scene()
    id_ = scene.made().id
    with pytest.raises(Unsupported):
        scene.router.offer_upload(TENANT, id_, PATH, None)
    with pytest.raises(Unsupported):
        scene.router.offer_download(TENANT, id_, PATH, seconds=60)
    there = There()
    upload = there.upload()
    there.put(upload)
    there.router.pause(TENANT, there.id)
    assert there.scene.seen(there.id).state is State.PAUSED
    with pytest.raises(NotRunning):
        there.upload()
    with pytest.raises(NotRunning):
        there.download()
    with pytest.raises(NotRunning):
        there.take(upload.id)
    assert there.files.done == []
