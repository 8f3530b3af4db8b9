"""Files stay inside: no path, link or race reaches a file of this machine."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from infra.local.host.files import Tree
from tests.local.host.hosting import E2B


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret").write_text("of this machine")
    return folder


@pytest.fixture
def tree(tmp_path: Path, outside: Path) -> Iterator[Tree]:
    root = tmp_path / "root"
    (root / "home/user").mkdir(parents=True)
    made = Tree(os.open(root, os.O_PATH | os.O_DIRECTORY), "/home/user")
    yield made
    made.close()


@pytest.fixture
def home(tmp_path: Path, tree: Tree) -> Path:
    return tmp_path / "root/home/user"


def _write(tree: Tree, path: str, text: str) -> None:
    fd = tree.open_write(path)
    os.write(fd, text.encode())
    os.close(fd)


@pytest.mark.parametrize("way", ["../../../outside/secret", "a/../../../../outside/secret"])
def test_the_parent_of_the_root_is_the_root(tree: Tree, way: str) -> None:
    with pytest.raises(FileNotFoundError):
        tree.open_read(way)


def test_links_that_lead_out_lead_nowhere(tree: Tree, home: Path, outside: Path) -> None:
    (home / "absolute").symlink_to(outside / "secret")
    (home / "relative").symlink_to("../../../outside/secret")
    (home / "folder").symlink_to(outside)
    (home / "up").symlink_to("../../..")
    for path in ("absolute", "relative", "folder/secret", "up/outside/secret"):
        with pytest.raises(FileNotFoundError):
            tree.open_read(path)
    for path in ("folder", "up/outside"):
        with pytest.raises(FileNotFoundError):
            tree.list(path)
    with pytest.raises(FileNotFoundError):
        tree.move("folder/secret", "stolen")


def test_writing_and_removing_through_links_stays_inside(
    tree: Tree, home: Path, outside: Path, tmp_path: Path
) -> None:
    (home / "absolute").symlink_to(outside / "secret")
    (home / "folder").symlink_to(outside)
    for path in ("absolute", "folder/new"):
        _write(tree, path, "inside")
    assert (tmp_path / f"root{outside}/secret").read_text() == "inside"
    assert (tmp_path / f"root{outside}/new").read_text() == "inside"
    tree.remove("absolute")
    tree.remove("folder")
    assert (outside / "secret").read_text() == "of this machine"
    assert [path.name for path in outside.iterdir()] == ["secret"]
    assert list(home.iterdir()) == []


def test_removing_a_directory_does_not_follow_its_links(
    tree: Tree, home: Path, outside: Path
) -> None:
    (home / "a/b").mkdir(parents=True)
    (home / "a/b/out").symlink_to(outside)
    (home / "a/file").write_text("x")
    tree.remove("a")
    assert (list(home.iterdir()), (outside / "secret").exists()) == ([], True)


def test_links_inside_work_as_links(tree: Tree, home: Path) -> None:
    (home / "real").mkdir()
    (home / "absolute").symlink_to("/home/user/real")
    (home / "chain").symlink_to("absolute/../absolute")
    (home / "dangling").symlink_to("made-by-write")
    _write(tree, "chain/file", "through")
    _write(tree, "dangling", "made")
    assert (home / "real/file").read_text() == "through"
    assert (home / "made-by-write").read_text() == "made"
    entry = tree.stat("absolute")
    assert (entry.kind, entry.target) == ("symlink", "/home/user/real")


def test_a_circle_of_links_is_an_error(tree: Tree, home: Path) -> None:
    (home / "a").symlink_to("b")
    (home / "b").symlink_to("a")
    with pytest.raises(OSError, match="symbolic links") as caught:
        tree.open_read("a")
    assert caught.value.errno == errno.ELOOP


def test_only_regular_files_are_read_and_written(tree: Tree, home: Path) -> None:
    os.mkfifo(home / "pipe")
    for work in (tree.open_read, tree.open_write):
        with pytest.raises(PermissionError):
            work("pipe")
        with pytest.raises(IsADirectoryError):
            work("/home/user")


def test_names_are_bytes_and_depth_is_bounded(tree: Tree, home: Path) -> None:
    (home / "a/b/c").mkdir(parents=True)
    (home / "line\nbreak ü").write_text("")
    names = [entry.path for entry in tree.list("~", depth=2)]
    assert names == [f"/home/user/{name}" for name in ("a", "a/b", "line\nbreak ü")]
    with pytest.raises(OSError, match="invalid path"):
        tree.stat("a\0b")


CLOSED = (400, 404, 500)
ROOT = "/proc/self/root"
ESCAPES = ["/proc/1/environ", f"{ROOT}/etc/passwd", "/proc/self/environ", "/proc/kcore"]


@pytest.mark.parametrize("path", ESCAPES)
def test_the_hosts_view_of_proc_is_closed(alpha: E2B, path: str) -> None:
    sandbox = alpha.made()
    answer = alpha.http.get("/sandbox/files", params={"path": path}, headers=alpha.into(sandbox))
    assert answer.status_code in CLOSED
    alpha.run(sandbox, f"ln -s {path} link")
    linked = alpha.http.get("/sandbox/files?path=link", headers=alpha.into(sandbox))
    assert linked.status_code in CLOSED


def test_over_the_wire_nothing_of_this_machine_is_read(alpha: E2B, outside: Path) -> None:
    sandbox = alpha.made()
    secret = outside / "secret"
    alpha.run(sandbox, f"ln -s {secret} link; ln -s / root; ln -s {outside} folder")
    headers = alpha.into(sandbox)
    ways = [str(secret), f"../..{secret}", "link", f"root{secret}", "folder/secret"]
    for path in ways:
        answer = alpha.http.get("/sandbox/files", params={"path": path}, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (404, 404), path
    stat = alpha.call(sandbox, "filesystem.Filesystem/Stat", path=str(secret))
    assert (stat.status_code, stat.json()["code"]) == (404, "not_found")
    listing = alpha.call(sandbox, "filesystem.Filesystem/ListDir", path="folder")
    assert listing.status_code == 404


def test_a_file_in_the_etc_of_the_sandbox_is_its_own(alpha: E2B) -> None:
    sandbox = alpha.made()
    answer = alpha.http.get("/sandbox/files?path=/etc/passwd", headers=alpha.into(sandbox))
    assert answer.text.splitlines()[1].startswith("user:x:1000:1000")
    shadow = alpha.http.get("/sandbox/files?path=/etc/shadow", headers=alpha.into(sandbox))
    assert shadow.status_code == 404


BAD: list[tuple[str, dict[str, Any], int, str]] = [
    ("Stat", {}, 400, "invalid_argument"),
    ("Stat", {"path": 3}, 400, "invalid_argument"),
    ("Stat", {"path": "missing"}, 404, "not_found"),
    ("ListDir", {"path": "missing"}, 404, "not_found"),
    ("ListDir", {"path": ".", "depth": -1}, 400, "invalid_argument"),
    ("ListDir", {"path": "file"}, 400, "invalid_argument"),
    ("MakeDir", {"path": "file"}, 409, "already_exists"),
    ("MakeDir", {"path": "file/below"}, 400, "invalid_argument"),
    ("Move", {"source": "missing", "destination": "x"}, 404, "not_found"),
    ("Move", {"source": "file"}, 400, "invalid_argument"),
    ("Remove", {"path": "missing"}, 404, "not_found"),
    ("Remove", {"path": "/usr/bin"}, 403, "permission_denied"),
    ("MakeDir", {"path": "/new"}, 403, "permission_denied"),
]


@pytest.mark.parametrize(("method", "message", "status", "code"), BAD)
def test_bad_requests_are_told_apart(
    alpha: E2B, method: str, message: dict[str, Any], status: int, code: str
) -> None:
    sandbox = alpha.made()
    alpha.run(sandbox, "touch file")
    answer = alpha.call(sandbox, f"filesystem.Filesystem/{method}", **message)
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text


def test_uploads_are_bounded_by_the_disk_and_well_formed(alpha: E2B) -> None:
    sandbox = alpha.made()
    headers = alpha.into(sandbox)
    url = "/sandbox/files?path=x"
    octets = headers | {"content-type": "application/octet-stream"}
    assert alpha.http.post(url, content=b"a", headers=headers).status_code == 400
    assert alpha.http.post(url, data={"other": "1"}, headers=headers).status_code == 400
    assert alpha.http.post(
        url, content=b"not gzip", headers=octets | {"content-encoding": "gzip"}
    ).status_code == 400  # fmt: skip
    assert alpha.http.post(
        url, content=b"a", headers=octets | {"x-metadata-a": "b"}
    ).status_code == 400  # fmt: skip
    written = alpha.http.post(url, content=b"", headers=octets)
    assert written.json() == [{"path": "/home/user/x", "name": "x", "type": "file"}]
