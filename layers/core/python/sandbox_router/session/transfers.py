"""Files of any size: a client and a sandbox meet at an object, each in its own time.

No record is kept. An upload's id says where the file goes and is bound to its tenant and sandbox;
objects have their tenant and sandbox in their keys, so that nobody can name another's.

An upload is taken once: when its file is in place, a mark takes the place of its object, and from
then on taking it again does nothing. Before that mark it may be written again, the same bytes.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import quote

from ..model.failure import Failure, Invalid, NotFound, TooLarge, TooSlow, UploadMissing
from ..model.sandbox import Sandbox
from ..model.secret import Secret
from ..model.token import Foreign, Tokens
from ..ports import Clock, Content, HoldsFiles, Ids, Objects, Ref, Signed
from .live import Session

LARGEST = 5 * 1024**3
"""Bytes of a file: what S3 takes in one request."""
URL_SECONDS = 3600
UPLOAD_MS = 86_400_000
"""How long an upload can be taken: as long as its object is kept at least."""
LAST_SECONDS = 3.0
"""For what comes after the last piece: an object is completed, a file gets its name."""
PREFIX = "upl-"
ID_LENGTH = 8000
"""Of an upload's id: it travels in a URL, for which a gateway has 10 KiB."""

Using = Callable[[Sandbox, Iterator[bytes]], Iterator[bytes]]


@dataclass(frozen=True)
class Download:
    """A request that reads the file as it was; until `expires_at`, in ms. size: in bytes."""

    request: Signed
    expires_at: int
    size: int


@dataclass(frozen=True)
class Upload:
    """A request that takes the file's bytes until `expires_at`, in ms; `id` is for taking it."""

    id: str
    request: Signed
    expires_at: int


class Transfers:
    """Downloads and uploads of running sandboxes. Raises what Session raises, TooLarge, TooSlow,
    UploadMissing and StoreBusy. using: lets every piece through as a use of the sandbox.
    """

    def __init__(
        self,
        session: Session,
        objects: Objects,
        clock: Clock,
        ids: Ids,
        pepper: Secret,
        using: Using,
    ) -> None:
        self._session, self._objects, self._clock, self._ids = session, objects, clock, ids
        self._tokens, self._using = Tokens("upload", pepper), using

    def download(self, box: Sandbox, path: str, seconds: float) -> Download:
        """The file as an object, whole or not at all, copied in so many seconds."""
        ref, files = self._session.files(box)
        key = _key("down", box, self._ids.nonce())
        with files.read_file(ref, path, LARGEST) as pieces:
            size = self._objects.put(key, self._timely(box, pieces, seconds))
        ends = self._clock.now() + URL_SECONDS * 1000
        return Download(self._objects.download(key, seconds=URL_SECONDS), ends, size)

    def upload(self, box: Sandbox, path: str, size: int | None) -> Upload:
        """A place for the file's bytes, which only `take` brings into the sandbox. size: where it
        is said, nothing else is taken.
        """
        self._session.files(box)
        if size is not None and size > LARGEST:
            raise _too_large()
        now, name = self._clock.now(), self._ids.nonce()
        upload_id = PREFIX + self._tokens.made(_owner(box), [now, name, path, size])
        if len(upload_id) > ID_LENGTH:  # of signs that JSON writes with a longer one
            raise Invalid(fields=(("path", "is too long for an upload"),))
        request = self._objects.upload(_key("up", box, name), seconds=URL_SECONDS, size=size)
        return Upload(upload_id, request, now + URL_SECONDS * 1000)

    def take(self, box: Sandbox, upload_id: str, seconds: float) -> None:
        """Bring what was uploaded to its path, in so many seconds; nobody sees a part of it there.
        Safe to repeat: see above.
        """
        name, path, size = self._opened(box, upload_id)
        ref, files = self._session.files(box)
        if self._there(_key("done", box, name)):
            return
        try:
            with self._objects.read(_key("up", box, name)) as content:
                _check(content.size, size)
                pieces = self._timely(box, iter(content.pieces), seconds - LAST_SECONDS)
                self._write(ref, files, path, Content(content.size, pieces))
        except NotFound:
            raise UploadMissing from None
        self._objects.put(_key("done", box, name), ())
        with suppress(Failure):  # it goes by itself
            self._objects.forget(_key("up", box, name))

    def _write(self, ref: Ref, files: HoldsFiles, path: str, content: Content) -> None:
        """Under a name of this call's own first: a repeat must not meet an earlier try."""
        folder = posixpath.dirname(posixpath.normpath(path)).rstrip("/")
        aside = f"{folder}/.{self._ids.nonce()}.upload"
        try:
            files.write_file(ref, aside, content)
            files.move_file(ref, aside, path)
        except Failure:
            with suppress(Failure):
                files.remove_file(ref, aside)
            raise

    def _timely(self, box: Sandbox, pieces: Iterator[bytes], seconds: float) -> Iterator[bytes]:
        until, size = self._clock.now() + seconds * 1000, 0
        for piece in self._using(box, pieces):
            if self._clock.now() >= until:
                mib = size // 1024**2
                raise TooSlow(f"After {int(seconds)} s only {mib} MiB of the file had passed")
            size += len(piece)
            yield piece

    def _opened(self, box: Sandbox, upload_id: str) -> tuple[str, str, int | None]:
        try:
            token = self._tokens.opened(_owner(box), upload_id.removeprefix(PREFIX))
        except Foreign:
            raise UploadMissing from None
        at, name, path, size = token
        if at < self._clock.now() - UPLOAD_MS:
            raise UploadMissing
        return name, path, size

    def _there(self, key: str) -> bool:
        try:
            with self._objects.read(key):
                return True
        except NotFound:
            return False


def _owner(box: Sandbox) -> str:
    return f"{quote(box.tenant, safe='')}/{box.id}"


def _key(kind: str, box: Sandbox, name: str) -> str:
    return f"{kind}/{_owner(box)}/{name}"


def _check(size: int, promised: int | None) -> None:
    if size > LARGEST:
        raise _too_large()
    if promised not in (None, size):
        reason = f"{size} bytes were uploaded"
        raise Invalid("The upload is not of its size", fields=(("size_bytes", reason),))


def _too_large() -> TooLarge:
    return TooLarge(f"A file is at most {LARGEST} bytes")
