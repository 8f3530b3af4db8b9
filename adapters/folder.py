"""Objects of one machine: private files in a folder, and signed URLs its gateway answers."""

from __future__ import annotations

import hashlib
import hmac
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote, urlencode

from sandbox_router.model.failure import Forbidden, NotFound, StoreBusy
from sandbox_router.model.secret import Secret
from sandbox_router.ports import Clock, Content, Signed

PLACE = "/_objects/"
"""Where below `url` the signed requests are answered."""
PIECE = 256 * 1024


class FolderObjects:
    """`ports.Objects`: a file per key, named by its hash, so that no key is ever a path.

    url: of whoever answers signed requests, asking `admit` first. secret: what signatures need.
    """

    def __init__(self, folder: Path, url: str, secret: Callable[[], Secret], clock: Clock) -> None:
        self._folder, self._url, self._secret, self._clock = folder, url, secret, clock

    def put(self, key: str, pieces: Iterable[bytes]) -> int:
        path, size = self._path(key), 0
        fresh = path.with_name(f".{os.urandom(16).hex()}")
        try:
            with _busy():
                self._folder.mkdir(mode=0o700, exist_ok=True)
                out = os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
            with out:
                for piece in pieces:  # what they raise is not ours
                    with _busy():
                        size += out.write(piece)
                with _busy():
                    out.flush()
                    os.fsync(out.fileno())
            with _busy():
                fresh.replace(path)
        except BaseException:
            with suppress(OSError):
                fresh.unlink()
            raise
        return size

    @contextmanager
    def read(self, key: str) -> Iterator[Content]:
        with _busy():
            try:
                file = self._path(key).open("rb")
            except FileNotFoundError:
                raise NotFound from None
        with file:
            yield Content(os.fstat(file.fileno()).st_size, iter(lambda: file.read(PIECE), b""))

    def forget(self, key: str) -> None:
        with _busy():
            self._path(key).unlink(missing_ok=True)

    def purge(self, seconds: float) -> None:
        """Forget what was put longer ago than that, and what a crash left of a put."""
        for path in self._folder.glob("*"):
            with _busy(), suppress(FileNotFoundError):
                if path.stat().st_mtime < time.time() - seconds:
                    path.unlink()

    def upload(self, key: str, *, seconds: int, size: int | None) -> Signed:
        exact = {} if size is None else {"size": str(size)}
        return Signed("PUT", self._signed("PUT", key, seconds, exact))

    def download(self, key: str, *, seconds: int) -> Signed:
        return Signed("GET", self._signed("GET", key, seconds, {}))

    def admit(self, method: str, key: str, query: Mapping[str, str]) -> int | None:
        """The size a signed request must have, where that was said; raises Forbidden."""
        given, ends, size = dict(query), query.get("expires", ""), query.get("size")
        signature = given.pop("signature", "")
        known = hmac.compare_digest(signature.encode(), self._mac(method, key, given).encode())
        if not known or int(ends) < self._clock.now():
            raise Forbidden("This URL is not for that, or not any more")
        return None if size is None else int(size)

    def _signed(self, method: str, key: str, seconds: int, given: Mapping[str, str]) -> str:
        given = {"expires": str(self._clock.now() + seconds * 1000), **given}
        query = urlencode({**given, "signature": self._mac(method, key, given)})
        return f"{self._url}{PLACE}{quote(key)}?{query}"

    def _mac(self, method: str, key: str, given: Mapping[str, str]) -> str:
        text = "\0".join(("object", method, key, urlencode(sorted(given.items()))))
        return hmac.new(self._secret().reveal().encode(), text.encode(), hashlib.sha256).hexdigest()

    def _path(self, key: str) -> Path:
        return self._folder / hashlib.sha256(key.encode()).hexdigest()


@contextmanager
def _busy() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreBusy from error
