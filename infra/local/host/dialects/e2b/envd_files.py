"""envd's file service. Facts: envd.yaml (/files), filesystem.proto."""

from __future__ import annotations

import asyncio
import errno
import os
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from infra.local.host.cell import Cell
from infra.local.host.dialects.e2b import connect
from infra.local.host.dialects.e2b.connect import RpcError
from infra.local.host.files import Entry
from infra.local.host.instance import Instance

T = TypeVar("T")
Serve = Callable[[Request, Instance, Cell], Awaitable[Response]]
_CHUNK = 256 * 1024
_MAX_DEPTH = 64
_TYPES = {
    "file": "FILE_TYPE_FILE", "directory": "FILE_TYPE_DIRECTORY", "symlink": "FILE_TYPE_SYMLINK",
    "other": "FILE_TYPE_UNSPECIFIED",
}  # fmt: skip


class FilesApi:
    """Files in a sandbox, over plain HTTP and over Connect."""

    def methods(self) -> dict[str, tuple[Serve, bool]]:
        """Return each method and whether it streams."""
        return {
            "Stat": (self._stat, False),
            "ListDir": (self._list, False),
            "MakeDir": (self._make, False),
            "Move": (self._move, False),
            "Remove": (self._remove, False),
        }

    async def download(self, request: Request, instance: Instance, cell: Cell) -> Response:
        """Send a file as it is."""
        path = request.query_params.get("path", "")
        try:
            fd = cell.files.open_read(path)
        except OSError as error:
            return _http_error(error, path)
        headers = {"Content-Length": str(os.fstat(fd).st_size)}
        return StreamingResponse(
            _content(fd, os.fstat(fd).st_size), 200, headers, "application/octet-stream"
        )

    async def upload(self, request: Request, instance: Instance, cell: Cell) -> Response:
        """Write files as they come, whole and in place of what was there."""
        if any(name.startswith("x-metadata-") for name in request.headers):
            return _http(400, "file metadata needs a newer envd than this host speaks")
        room = instance.template.disk_mib * 1024 * 1024
        path = request.query_params.get("path", "")
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        written = []
        try:
            if kind == "application/octet-stream":
                written.append(await _write(cell, path, _raw(request), room))
            elif kind == "multipart/form-data":
                async with request.form(max_files=1000, max_part_size=room) as form:
                    for part in form.getlist("file"):
                        if isinstance(part, UploadFile):
                            target = path or part.filename or ""
                            written.append(await _write(cell, target, _part(part), room))
            else:
                return _http(400, f"unsupported content type {kind!r}")
        except OSError as error:
            return _http_error(error, path)
        except zlib.error as error:
            return _http(400, f"invalid gzip body: {error}")
        if not written:
            return _http(400, "the body has no part named 'file'")
        return JSONResponse(written)

    async def _stat(self, request: Request, instance: Instance, cell: Cell) -> Response:
        message = await connect.read_unary(request)
        return _entry_response(await _do(cell.files.stat, _path(message, "path")))

    async def _list(self, request: Request, instance: Instance, cell: Cell) -> Response:
        message = await connect.read_unary(request)
        depth = message.get("depth", 0)
        if not isinstance(depth, int) or not 0 <= depth <= _MAX_DEPTH:
            raise RpcError("invalid_argument", f"depth must be 0 to {_MAX_DEPTH}")
        found = await _do(cell.files.list, _path(message, "path"), depth or 1)
        return JSONResponse({"entries": [_entry(one) for one in found]} if found else {})

    async def _make(self, request: Request, instance: Instance, cell: Cell) -> Response:
        message = await connect.read_unary(request)
        return _entry_response(await _do(cell.files.make_directory, _path(message, "path")))

    async def _move(self, request: Request, instance: Instance, cell: Cell) -> Response:
        message = await connect.read_unary(request)
        source, destination = _path(message, "source"), _path(message, "destination")
        try:
            return _entry_response(await asyncio.to_thread(cell.files.move, source, destination))
        except FileNotFoundError as error:
            raise RpcError("not_found", f"source file not found: {error.strerror}") from error
        except OSError as error:  # move.go tells nothing else apart
            raise RpcError("internal", f"error renaming: {error.strerror}") from error

    async def _remove(self, request: Request, instance: Instance, cell: Cell) -> Response:
        message = await connect.read_unary(request)
        await _do(cell.files.remove, _path(message, "path"))
        return JSONResponse({})


async def _do(work: Callable[..., T], *arguments: Any) -> T:
    """Run blocking work on files in a thread; tell its errors as Connect does."""
    try:
        return await asyncio.to_thread(work, *arguments)
    except OSError as error:
        path = str(error.filename or arguments[0])
        raise RpcError(_CODES.get(error.errno or 0, "internal"), _words(error, path)) from error


_CODES = {
    errno.ENOENT: "not_found",
    errno.EEXIST: "already_exists",
    errno.ENOTDIR: "invalid_argument",
    errno.EISDIR: "invalid_argument",
    errno.EINVAL: "invalid_argument",
    errno.ELOOP: "invalid_argument",
    errno.ENAMETOOLONG: "invalid_argument",
    errno.EACCES: "permission_denied",
    errno.EPERM: "permission_denied",
    errno.EROFS: "permission_denied",
    errno.ENOTEMPTY: "failed_precondition",
    errno.EBUSY: "failed_precondition",
    errno.EXDEV: "failed_precondition",
    errno.ENOSPC: "resource_exhausted",
}
# envd answers 500 with the reason where it lacks permission.
_STATUSES = {
    errno.ENOENT: 404, errno.EISDIR: 400, errno.ENOTDIR: 400, errno.EINVAL: 400,
    errno.ELOOP: 400, errno.ENAMETOOLONG: 400, errno.ENOSPC: 507, errno.EFBIG: 507,
}  # fmt: skip


def _words(error: OSError, path: str) -> str:
    if error.errno == errno.ENOENT:
        return f"path '{path}' does not exist"
    if error.errno == errno.EISDIR:
        return f"path '{path}' is a directory"
    if error.errno == errno.EEXIST:
        return f"path '{path}' already exists"
    return f"path '{path}': {error.strerror}"


def _http_error(error: OSError, path: str) -> Response:
    return _http(_STATUSES.get(error.errno or 0, 500), _words(error, path))


def _http(status: int, message: str) -> Response:
    return JSONResponse({"code": status, "message": message}, status)


def _path(message: dict[str, Any], name: str) -> str:
    value = message.get(name)
    if not isinstance(value, str) or not value:
        raise RpcError("invalid_argument", f"{name} is required")
    return value


async def _content(fd: int, size: int) -> AsyncIterator[bytes]:
    """Yield exactly the announced bytes, unless the file shrinks meanwhile."""
    try:
        while size > 0 and (data := await asyncio.to_thread(os.read, fd, min(_CHUNK, size))):
            size -= len(data)
            yield data
    finally:
        os.close(fd)


async def _raw(request: Request) -> AsyncIterator[bytes]:
    if request.headers.get("content-encoding", "identity") != "gzip":
        async for chunk in request.stream():
            yield chunk
        return
    unpacker = zlib.decompressobj(wbits=31)
    async for chunk in request.stream():
        yield unpacker.decompress(chunk)
    yield unpacker.flush()


async def _part(part: UploadFile) -> AsyncIterator[bytes]:
    while data := await part.read(_CHUNK):
        yield data


async def _write(cell: Cell, path: str, content: AsyncIterator[bytes], room: int) -> dict[str, Any]:
    fd = await asyncio.to_thread(cell.files.open_write, path)
    try:
        async for data in content:
            room -= len(data)
            if room < 0:
                raise OSError(errno.ENOSPC, "not enough disk space available", path)
            await asyncio.to_thread(_write_all, fd, data)
    finally:
        os.close(fd)
    full = cell.files.absolute(path)
    return {"path": full, "name": full.rpartition("/")[2], "type": "file"}


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _entry_response(entry: Entry) -> Response:
    return JSONResponse({"entry": _entry(entry)})


def _entry(entry: Entry) -> dict[str, Any]:
    modified = datetime.fromtimestamp(entry.modified_ns // 1_000_000_000, UTC)
    owner = "user" if entry.mine else "root"
    answer: dict[str, Any] = {
        "name": entry.name,
        "type": _TYPES[entry.kind],
        "path": entry.path,
        "mode": entry.mode & 0o7777,
        "permissions": entry.permissions,
        "owner": owner,
        "group": owner,
        "modifiedTime": modified.strftime("%Y-%m-%dT%H:%M:%S")
        + f".{entry.modified_ns % 1_000_000_000:09d}Z",
    }
    if entry.size:
        answer["size"] = str(entry.size)  # protobuf's int64 is text in JSON
    if entry.target is not None:
        answer["symlinkTarget"] = entry.target
    return answer
