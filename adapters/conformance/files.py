"""Cases: files inside an instance, and its ports."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Iterator
from hashlib import sha256

import httpx

from sandbox_router.model.failure import (
    FileMissing,
    Gone,
    ProviderFailure,
    Rejected,
    StoreBusy,
    TooLarge,
    Unknown,
)
from sandbox_router.ports import Command, Content, Output, Ref

from .case import Bench, Missing, case, check, letters, refused

CONTENTS = {
    "empty": b"",
    "text": "ü\r\n".encode(),
    "binary": bytes(range(256)),
    "boundary": b"\r\n--x\r\nContent-Disposition: form-data\r\n\r\n",
    "large": bytes(range(256)) * 6000,
}
PIECE, LARGE, MEMORY = 65_536, 20 * 1024 * 1024, 4 * 1024 * 1024
NAMES = (
    "plain.txt",
    ".hidden",
    "with space",
    "ünïcode-日本-🙂",
    "a%20b",
    "%2e%2e%2fetc",
    "%252e",
    "q?x=1&y=2#z",
    "plus+plus",
    "semi;colon,comma",
    "quote'\"`",
    "back\\slash",
    "$(id)",
    "-rf",
    "trailing.",
    " ",
    "line\nbreak",
)


@case("R-FILES-01", "files")
def contents(bench: Bench) -> None:
    """Contents arrive byte for byte, both ways."""
    ref, folder = bench.shared(), f"/tmp/{letters(12)}"
    for name, data in CONTENTS.items():
        bench.write(ref, f"{folder}/{name}", data)
        check(bench.read(ref, f"{folder}/{name}", len(data)) == data, f"{name} differs")


@case("R-FILES-02", "files")
def names(bench: Bench) -> None:
    """Any name is data, never a piece of a URL or of a shell."""
    provider, ref, folder = bench.files, bench.shared(), f"/tmp/{letters(12)}"
    for name in NAMES:
        bench.write(ref, f"{folder}/{name}", name.encode())
    listed = [entry.name for entry in provider.list_directory(ref, folder)]
    check(listed == sorted(NAMES), f"other names: {set(listed) ^ set(NAMES)}")
    for name in NAMES:
        path = f"{folder}/{name}"
        check(bench.read(ref, path, 100) == name.encode(), f"{name!r} differs")
        provider.remove_file(ref, path)
    check(provider.list_directory(ref, folder) == (), "something is left")


@case("R-FILES-03", "files", "exec")
def same_disk(bench: Bench) -> None:
    """What a command sees and what the file calls see is the same."""
    ref, path = bench.shared(), f"/tmp/{letters(12)}"
    bench.write(ref, path, b"from outside")
    ran = bench.shell(ref, f"cat {path}; printf inside > {path}")
    check(ran.stdout == b"from outside", "the command sees another content")
    check(bench.read(ref, path, 100) == b"inside", "the call sees another content")


@case("R-FILES-04", "files")
def missing(bench: Bench) -> None:
    """What is not there is missing, for every call."""
    provider, ref, path = bench.files, bench.shared(), f"/tmp/{letters(12)}/x"
    refused(FileMissing, lambda: bench.read(ref, path, 100))
    refused(FileMissing, lambda: provider.list_directory(ref, path))
    refused(FileMissing, lambda: provider.remove_file(ref, path))


@case("R-FILES-05", "files")
def too_large(bench: Bench) -> None:
    """A file over the limit is not read."""
    ref, path = bench.shared(), f"/tmp/{letters(12)}"
    bench.write(ref, path, bytes(1001))
    refused(TooLarge, lambda: bench.read(ref, path, 1000))
    check(len(bench.read(ref, path, 1001)) == 1001, "the limit itself is too much")


@case("R-FILES-06", "files")
def replaces(bench: Bench) -> None:
    """Parents are made, contents replaced whole."""
    provider, ref, folder = bench.files, bench.shared(), f"/tmp/{letters(12)}"
    bench.write(ref, f"{folder}/a/b/c", b"a longer one")
    bench.write(ref, f"{folder}/a/b/c", b"short")
    check(bench.read(ref, f"{folder}/a/b/c", 100) == b"short", "the old one shines through")
    entries = provider.list_directory(ref, folder)
    check([(e.name, e.kind) for e in entries] == [("a", "directory")], "the list differs")
    entries = provider.list_directory(ref, f"{folder}/a/b")
    check([(e.name, e.kind, e.size) for e in entries] == [("c", "file", 5)], "the list differs")
    check(entries[0].path == f"{folder}/a/b/c", "the path differs")
    moment = entries[0].modified_at
    check(moment is None or abs(moment / 1000 - time.time()) < 300, "modified at another time")


@case("R-FILES-07", "files")
def tree(bench: Bench) -> None:
    """A directory goes with its content."""
    provider, ref, folder = bench.files, bench.shared(), f"/tmp/{letters(12)}"
    bench.write(ref, f"{folder}/a/b", b"1")
    bench.write(ref, f"{folder}/c", b"2")
    provider.remove_file(ref, folder)
    refused(FileMissing, lambda: provider.list_directory(ref, folder))


@case("R-FILES-08", "files")
def kinds(bench: Bench) -> None:
    """A directory is no file and a file no directory."""
    provider, ref, path = bench.files, bench.shared(), f"/tmp/{letters(12)}"
    bench.write(ref, path, b"1")
    refused(ProviderFailure, lambda: bench.read(ref, "/tmp", 100))
    refused(ProviderFailure, lambda: provider.list_directory(ref, path))


@case("R-FILES-09", "files")
def gone(bench: Bench) -> None:
    """No file is reached in what is gone."""
    made = bench.create()
    bench.provider.destroy(made.id)
    refused(Gone, lambda: bench.read(Ref(made.id, made.access), "/etc/hostname", 1000))


@case("R-FILES-10", "files")
def pieces(bench: Bench) -> None:
    """A large file goes and comes in pieces, byte for byte, and memory stays small."""
    ref, path, sent, got = bench.shared(), f"/tmp/{letters(12)}", sha256(), sha256()

    def written() -> Iterator[bytes]:
        for n in range(LARGE // PIECE):
            piece = n.to_bytes(4, "big") * (PIECE // 4)
            sent.update(piece)
            yield piece

    tracemalloc.start()
    try:
        bench.files.write_file(ref, path, Content(LARGE, written()))
        with bench.files.read_file(ref, path, LARGE) as back:
            for piece in back:
                got.update(piece)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    check(sent.digest() == got.digest(), "it differs")
    check(peak < MEMORY, f"it took {peak} bytes of memory")


@case("R-FILES-11", "files")
def renamed(bench: Bench) -> None:
    """A file takes a name, also another file's, and never a directory's."""
    provider, ref, folder = bench.files, bench.shared(), f"/tmp/{letters(12)}"
    for name in ("new", "old"):
        bench.write(ref, f"{folder}/.{name} 1", name.encode())
        provider.move_file(ref, f"{folder}/.{name} 1", f"{folder}/%2e {name}")
    provider.move_file(ref, f"{folder}/%2e new", f"{folder}/%2e old")
    check(bench.read(ref, f"{folder}/%2e old", 100) == b"new", "the content differs")
    names = [entry.name for entry in provider.list_directory(ref, folder)]
    check(names == ["%2e old"], f"there are {names}")
    refused(FileMissing, lambda: provider.move_file(ref, f"{folder}/none", f"{folder}/x"))
    bench.write(ref, f"{folder}/d/x", b"1")
    refused(Rejected, lambda: provider.move_file(ref, f"{folder}/%2e old", f"{folder}/d"))
    check(bench.read(ref, f"{folder}/d/x", 100) == b"1", "a directory was replaced")
    check(bench.read(ref, f"{folder}/%2e old", 100) == b"new", "the refused one is gone")


@case("R-FILES-12", "files")
def cut(bench: Bench) -> None:
    """A content that fails on its way says why, and spoils no other call."""
    ref, folder = bench.shared(), f"/tmp/{letters(12)}"

    def failing() -> Iterator[bytes]:
        yield bytes(PIECE)
        raise StoreBusy

    content = Content(2 * PIECE, failing())
    refused(StoreBusy, lambda: bench.files.write_file(ref, f"{folder}/a", content))
    short = Content(2 * PIECE, (bytes(PIECE),))
    refused(Unknown, lambda: bench.files.write_file(ref, f"{folder}/b", short))
    bench.write(ref, f"{folder}/c", b"whole")
    check(bench.read(ref, f"{folder}/c", 100) == b"whole", "the next one differs")


@case("R-PORT-01", "ports")
def endpoint(bench: Bench) -> None:
    """A port's endpoint is as private as declared, encrypted, and names no other port."""
    provider, ref = bench.ports, bench.shared()
    first, second = provider.open_port(ref, 8080), provider.open_port(ref, 8081)
    url = httpx.URL(first.url)
    local = url.host in ("127.0.0.1", "localhost", "::1")
    check(url.scheme == "https" or local, f"its scheme is {url.scheme}")
    if _private(bench):
        check(first.visibility == "private" and bool(first.headers), "nothing keeps others out")
    else:
        check(first.visibility == "public", "it is not said that everybody is let in")
    check(first != second, "two ports have one endpoint")
    provider.close_port(ref, 8080)
    provider.close_port(ref, 8080)


@case("R-PORT-02", "ports", "exec")
def answers(bench: Bench) -> None:
    """A port answers to its headers, and where it is private to nobody without them."""
    if not bench.dials:
        raise Missing("way to the instances' ports")
    provider, ref = bench.ports, bench.shared()
    server = bench.commands.run(
        ref, Command(argv=("python3", "-u", "-m", "http.server", "8137"), timeout_seconds=60)
    )
    check(isinstance(next(iter(server)), Output), "the server does not start")
    there = provider.open_port(ref, 8137)
    with httpx.Client(trust_env=False, timeout=10) as browser:
        open_to_all = browser.get(there.url).status_code
        admitted = browser.get(there.url, headers=dict(there.headers)).status_code
    closed = open_to_all in (401, 403, 404)
    check(closed or not _private(bench), f"without the headers it answers {open_to_all}")
    check(admitted == 200, f"with the headers it answers {admitted}")


@case("R-PORT-03", "ports")
def found_again(bench: Bench) -> None:
    """The token of an instance that was found again is learnt."""
    order = bench.order()
    bench.create(order)
    found = bench.provider.find(order.tags)
    if found is None:
        raise Missing("list without lag")
    there = bench.ports.open_port(Ref(found.id, found.access), 8080)
    check(bool(there.headers) or not _private(bench), "nothing keeps others out")


def _private(bench: Bench) -> bool:
    return "private" in (bench.profile.detail("ports", "visibility") or ())
