"""Objects in a folder: private files, and signed requests that are for nothing else."""

from __future__ import annotations

import os
import time
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest

from adapters.folder import PLACE, FolderObjects
from sandbox_router.model.failure import Forbidden, NotFound, StoreBusy
from sandbox_router.model.secret import Secret
from tests.fakes.clock import FakeClock

KEY = "up/ac%2Fme/sbx-a/one"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def objects(tmp_path: Path, clock: FakeClock) -> FolderObjects:
    secret = Secret("p" * 64)
    return FolderObjects(tmp_path / "objects", "http://127.0.0.1:8080", lambda: secret, clock)


def asked(url: str) -> tuple[str, dict[str, str]]:
    """The key and the query a server reads out of a URL."""
    parts = urlsplit(url)
    assert parts.path.startswith(PLACE)
    return unquote(parts.path.removeprefix(PLACE)), dict(parse_qsl(parts.query))


def test_a_file_is_its_owners_alone(objects: FolderObjects, tmp_path: Path) -> None:
    objects.put(KEY, (b"x",))
    (path,) = (tmp_path / "objects").iterdir()
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert "acme" not in path.name


def test_a_signed_request_is_admitted_as_it_was_signed(objects: FolderObjects) -> None:
    key, query = asked(objects.upload(KEY, seconds=60, size=5).url)
    assert (key, objects.admit("PUT", key, query)) == (KEY, 5)
    key, query = asked(objects.upload(KEY, seconds=60, size=None).url)
    assert (key, objects.admit("PUT", key, query)) == (KEY, None)
    key, query = asked(objects.download(KEY, seconds=60).url)
    assert (key, objects.admit("GET", key, query)) == (KEY, None)


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "DELETE", "put", ""])
def test_another_method_is_refused(objects: FolderObjects, method: str) -> None:
    key, query = asked(objects.upload(KEY, seconds=60, size=5).url)
    with pytest.raises(Forbidden):
        objects.admit(method, key, query)


CHANGES = [
    {"signature": ""},
    {"signature": "0" * 64},
    {"signature": "é\ud800".encode("utf-8", "replace").decode()},
    {"expires": "9999999999999"},
    {"expires": "x"},
    {"size": "6"},
    {"size": ""},
    {"more": "1"},
]


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_a_changed_word_is_refused(objects: FolderObjects, change: dict[str, str]) -> None:
    key, query = asked(objects.upload(KEY, seconds=60, size=5).url)
    with pytest.raises(Forbidden):
        objects.admit("PUT", key, {**query, **change})
    for name in query:
        with pytest.raises(Forbidden):
            objects.admit("PUT", key, {n: v for n, v in query.items() if n != name})


@pytest.mark.parametrize("key", ["", "up/ac%2Fme/sbx-a/two", "up/ac/me/sbx-a/one", f"{KEY}\0"])
def test_another_key_is_refused(objects: FolderObjects, key: str) -> None:
    _, query = asked(objects.upload(KEY, seconds=60, size=5).url)
    with pytest.raises(Forbidden):
        objects.admit("PUT", key, query)


def test_another_deployments_signature_is_refused(objects: FolderObjects, tmp_path: Path) -> None:
    other = FolderObjects(tmp_path, "http://127.0.0.1:8080", lambda: Secret("q" * 64), FakeClock())
    key, query = asked(other.download(KEY, seconds=60).url)
    with pytest.raises(Forbidden):
        objects.admit("GET", key, query)


def test_time_is_over_when_it_is(objects: FolderObjects, clock: FakeClock) -> None:
    key, query = asked(objects.download(KEY, seconds=60).url)
    clock.sleep(60)
    objects.admit("GET", key, query)
    clock.sleep(0.001)
    with pytest.raises(Forbidden):
        objects.admit("GET", key, query)


def test_what_is_old_is_forgotten_and_what_a_crash_left_too(
    objects: FolderObjects, tmp_path: Path
) -> None:
    objects.purge(60)  # there is no folder yet
    for key in ("old", "new"):
        objects.put(key, (b"x",))
    (tmp_path / "objects" / ".half").touch()
    before = set((tmp_path / "objects").iterdir())
    objects.purge(60)
    assert set((tmp_path / "objects").iterdir()) == before
    with objects.read("new"):
        pass
    kept = max(before, key=lambda path: path.stat().st_mtime_ns * (path.name != ".half"))
    for path in before - {kept}:
        os.utime(path, (0, time.time() - 61))
    objects.purge(60)
    assert set((tmp_path / "objects").iterdir()) == {kept}
    with pytest.raises(NotFound), objects.read("old"):
        pass


def test_a_folder_that_takes_nothing_is_busy(tmp_path: Path, clock: FakeClock) -> None:
    (tmp_path / "objects").write_text("a file in its place")
    objects = FolderObjects(tmp_path / "objects", "", lambda: Secret("p" * 64), clock)
    with pytest.raises(StoreBusy):
        objects.put(KEY, (b"x",))
