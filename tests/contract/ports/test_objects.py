"""The Objects port: bytes under keys, whole or not at all, and URLs for one of them each."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

import pytest

from adapters.aws.objects import PART
from sandbox_router.model.failure import NotFound, TooLarge
from sandbox_router.ports import Objects

KEY, OTHER = "up/acme/sbx-a/one", "up/acme/sbx-a/one.done"
SIZES = [0, 1, 7, 100_000, PART - 1, PART, PART + 1, 2 * PART, 2 * PART + 12_345]


def pieces(size: int, each: int = 65_521) -> Iterator[bytes]:
    """Bytes that are different everywhere, in pieces that fit no part."""
    block = b"".join(sha256(bytes([n])).digest() for n in range(256))
    data = block * (size // len(block) + 1)
    yield from (data[at : min(at + each, size)] for at in range(0, size, each))


def kept(objects: Objects, key: str) -> bytes:
    with objects.read(key) as content:
        data = b"".join(content.pieces)
    assert content.size == len(data)
    return data


@pytest.mark.parametrize("size", SIZES)
def test_what_was_put_comes_back_byte_for_byte(objects: Objects, size: int) -> None:
    assert objects.put(KEY, pieces(size)) == size
    assert kept(objects, KEY) == b"".join(pieces(size))


def test_what_comes_later_takes_its_place_and_that_of_no_other(objects: Objects) -> None:
    objects.put(KEY, pieces(PART + 1))
    objects.put(OTHER, (b"other",))
    objects.put(KEY, (b"la", b"", b"ter"))
    assert (kept(objects, KEY), kept(objects, OTHER)) == (b"later", b"other")


def test_what_is_not_there_is_not_found(objects: Objects) -> None:
    with pytest.raises(NotFound), objects.read(KEY):
        pass


def test_what_is_forgotten_is_gone_and_may_be_forgotten_again(objects: Objects) -> None:
    for key in (KEY, OTHER):
        objects.put(key, (b"x",))
    for _ in range(2):
        objects.forget(KEY)
        with pytest.raises(NotFound), objects.read(KEY):
            pass
    assert kept(objects, OTHER) == b"x"


@pytest.mark.parametrize("size", [0, 10, PART, 2 * PART + 1])
def test_what_fails_on_its_way_leaves_what_was_there(objects: Objects, size: int) -> None:
    def failing() -> Iterator[bytes]:
        yield from pieces(size)
        raise TooLarge

    with pytest.raises(TooLarge):
        objects.put(KEY, failing())
    with pytest.raises(NotFound), objects.read(KEY):
        pass
    objects.put(KEY, (b"before",))
    with pytest.raises(TooLarge):
        objects.put(KEY, failing())
    assert kept(objects, KEY) == b"before"


@pytest.mark.parametrize("key", ["../../etc/passwd", "a/../b", "/a", "a b/ü?x=1&y#z%2e%2e", "a\\b"])
def test_a_key_is_a_name_and_never_a_path(objects: Objects, key: str) -> None:
    objects.put(key, (b"mine",))
    assert kept(objects, key) == b"mine"
    objects.forget(key)
    with pytest.raises(NotFound), objects.read(key):
        pass


def test_a_reader_who_stops_early_harms_nobody(objects: Objects) -> None:
    objects.put(KEY, pieces(PART + 1))
    with objects.read(KEY) as content:
        assert next(iter(content.pieces))
    assert kept(objects, KEY) == b"".join(pieces(PART + 1))


def test_a_signed_request_names_its_method_and_shows_its_url_to_nobody(objects: Objects) -> None:
    put = objects.upload(KEY, seconds=60, size=None)
    get = objects.download(KEY, seconds=60)
    assert (put.method, get.method) == ("PUT", "GET")
    assert put.url != get.url
    assert put.url != objects.upload(KEY, seconds=60, size=5).url
    for signed in (put, get):
        assert "sbx-a" in signed.url
        assert "http" not in repr(signed)
