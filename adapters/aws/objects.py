"""Objects on S3: whole or not at all, in parts when they are large, with URLs of their own.

Facts from the S3 API reference and user guide: a part but the last has at least 5 MiB, and there
are at most 10,000; nothing shows under the key before the upload is completed; a lost answer to
that completion is followed by NoSuchUpload; a signed URL stops with the credentials that signed
it; a signed Content-Length must be the request's; bytes go to S3 with a hash that it checks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from io import BytesIO
from itertools import chain
from typing import Any

from sandbox_router.model.failure import Failure, NotFound, StoreBusy
from sandbox_router.ports import Content, Signed

from . import errors

PART = 8 * 1024 * 1024
PIECE = 256 * 1024
STORED = {"ContentType": "application/octet-stream", "ContentDisposition": "attachment"}
"""No browser takes what a sandbox wrote for a page of the bucket."""
_MISSING = ("NoSuchKey", "404")


class S3Objects:
    """`ports.Objects` in one bucket, whose lifecycle rules forget what nobody forgot."""

    def __init__(self, client: Any, bucket: str) -> None:
        self._client, self._bucket = client, bucket

    def put(self, key: str, pieces: Iterable[bytes]) -> int:
        parts = _parts(pieces)
        opening = [part for _, part in zip(range(2), parts, strict=False)]
        if len(opening) == 2:
            return self._in_parts(key, chain(_taken(opening), parts))
        whole = b"".join(opening)
        self._called("put_object", Key=key, Body=BytesIO(whole), **STORED)
        return len(whole)

    def _in_parts(self, key: str, parts: Iterable[bytes]) -> int:
        upload = self._called("create_multipart_upload", Key=key, **STORED)["UploadId"]
        whose = {"Key": key, "UploadId": upload}
        tags, size = list[dict[str, Any]](), 0
        try:
            for number, part in enumerate(parts, 1):
                # A file, not bytes: those go out in one step, which has a second in all.
                body = BytesIO(part)
                answer = self._called("upload_part", PartNumber=number, Body=body, **whose)
                tags.append({"PartNumber": number, "ETag": answer["ETag"]})
                size += len(part)
            self._completed(whose, tags, size)
        except BaseException:
            with suppress(Failure):  # else the bucket's rule does it
                self._called("abort_multipart_upload", **whose)
            raise
        return size

    def _completed(self, whose: dict[str, Any], tags: list[dict[str, Any]], size: int) -> None:
        try:
            self._called("complete_multipart_upload", MultipartUpload={"Parts": tags}, **whose)
        except StoreBusy as busy:
            cause = busy.__cause__
            if not isinstance(cause, Exception) or errors.code(cause) != "NoSuchUpload":
                raise
            # Perhaps an earlier try of this very call: the client repeats what it got no answer to.
            if self._called("head_object", Key=whose["Key"])["ContentLength"] != size:
                raise

    @contextmanager
    def read(self, key: str) -> Iterator[Content]:
        answer = self._called("get_object", Key=key)
        body = answer["Body"]  # as a context it would give the bare stream, which counts nothing
        try:
            yield Content(answer["ContentLength"], _pieces(body))
        finally:
            body.close()

    def forget(self, key: str) -> None:
        self._called("delete_object", Key=key)

    def upload(self, key: str, *, seconds: int, size: int | None) -> Signed:
        exact = {} if size is None else {"ContentLength": size}
        return Signed("PUT", self._signed("put_object", {"Key": key, **exact}, seconds))

    def download(self, key: str, *, seconds: int) -> Signed:
        return Signed("GET", self._signed("get_object", {"Key": key}, seconds))

    def _signed(self, operation: str, request: dict[str, Any], seconds: int) -> str:
        request = {"Bucket": self._bucket, **request}
        try:
            url = self._client.generate_presigned_url(operation, request, ExpiresIn=seconds)
        except Exception as error:
            raise _failure(error) from error
        return str(url)

    def _called(self, operation: str, **request: Any) -> Any:
        try:
            return getattr(self._client, operation)(Bucket=self._bucket, **request)
        except Exception as error:
            raise _failure(error) from error


def _parts(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in parts of at least `PART`, the last one smaller."""
    held, size = list[bytes](), 0
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size >= PART:
            yield b"".join(held)
            held, size = [], 0
    if size:
        yield b"".join(held)


def _taken(parts: list[bytes]) -> Iterator[bytes]:
    """Each of them, kept by nobody else from then on."""
    while parts:
        yield parts.pop(0)


def _pieces(body: Any) -> Iterator[bytes]:
    try:
        yield from body.iter_chunks(PIECE)
    except Exception as error:
        raise _failure(error) from error


def _failure(error: Exception) -> Failure:
    if errors.code(error) in _MISSING:
        return NotFound()
    if errors.meaning(error) in ("broken", "invalid"):
        errors.note("s3", error)
    return StoreBusy()
