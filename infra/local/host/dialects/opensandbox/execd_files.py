"""execd's files. Facts: execd-api.yaml and components/execd/pkg/web/controller at 3bb6fad."""

from __future__ import annotations

import asyncio
import errno
import fnmatch
import json
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar

from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from infra.local.host.cell import Cell
from infra.local.host.dialects.opensandbox.errors import ApiError
from infra.local.host.dialects.opensandbox.execd_paths import expand
from infra.local.host.files import Entry
from infra.local.host.instance import Instance

T = TypeVar("T")
Serve = Callable[[Request, Instance, Cell], Awaitable[Response]]
_CHUNK = 256 * 1024
_MAX_DEPTH = 64
_RANGE = re.compile(r"bytes=(\d+)-(\d*)")
_USERS = ("user", "root")


class FilesApi:
    """Files in a sandbox."""

    def methods(self) -> dict[str, Serve]:
        """Return each operation by its method and path."""
        return {
            "GET /files/info": self._info,
            "DELETE /files": self._remove_files,
            "POST /files/permissions": self._permissions,
            "POST /files/mv": self._move,
            "GET /files/search": self._search,
            "POST /files/replace": self._replace,
            "POST /files/upload": self._upload,
            "GET /files/download": self._download,
            "GET /directories/list": self._list,
            "POST /directories": self._make,
            "DELETE /directories": self._remove_directories,
        }

    async def _info(self, request: Request, instance: Instance, cell: Cell) -> Response:
        found = {}
        for path in request.query_params.getlist("path"):
            found[path] = _entry(await _do(cell.files.stat, _path(path, instance, cell)))
        return JSONResponse(found)

    async def _remove_files(self, request: Request, instance: Instance, cell: Cell) -> Response:
        for path in request.query_params.getlist("path"):
            full = _path(path, instance, cell)
            if cell.files.is_directory(full):
                raise _runtime(f"error removing file {path}. path is a directory: {path}")
            await _gone(cell, full)
        return Response(status_code=200)

    async def _remove_directories(
        self, request: Request, instance: Instance, cell: Cell
    ) -> Response:
        for path in request.query_params.getlist("path"):
            await _gone(cell, _path(path, instance, cell))
        return Response(status_code=200)

    async def _permissions(self, request: Request, instance: Instance, cell: Cell) -> Response:
        for path, wanted in (await _object(request)).items():
            fd = await _do(cell.files.open_read, _path(path, instance, cell))
            try:
                _permit(fd, wanted)
            finally:
                os.close(fd)
        return Response(status_code=200)

    async def _move(self, request: Request, instance: Instance, cell: Cell) -> Response:
        for item in await _json(request, list):
            source = _path(item.get("src", ""), instance, cell)
            destination = _path(item.get("dest", ""), instance, cell)
            await _do(cell.files.stat, source)
            if await _is_there(cell, destination):
                raise _runtime(f"destination path already exists: {destination}")
            await _do(cell.files.move, source, destination)
        return Response(status_code=200)

    async def _search(self, request: Request, instance: Instance, cell: Cell) -> Response:
        pattern = request.query_params.get("pattern") or "**"
        root = _path(_required(request), instance, cell)
        found = await _do(cell.files.list, root, _MAX_DEPTH)
        shown = [e for e in found if e.kind != "directory" and fnmatch.fnmatch(e.name, pattern)]
        return JSONResponse([_entry(entry) for entry in shown])

    async def _replace(self, request: Request, instance: Instance, cell: Cell) -> Response:
        counts = {}
        for path, item in (await _object(request)).items():
            old, new = str(item.get("old") or "").encode(), str(item.get("new") or "").encode()
            if not old:
                raise _bad("old content must not be empty")
            full = _path(path, instance, cell)
            content = await _do(_read_all, cell, full)
            counts[path] = {"replacedCount": content.count(old)}
            await _do(_write_whole, cell, full, content.replace(old, new))
        if request.query_params.get("verbose") == "true":
            return JSONResponse(counts)
        return Response(status_code=200)

    async def _upload(self, request: Request, instance: Instance, cell: Cell) -> Response:
        room = instance.template.disk_mib * 1024 * 1024
        async with request.form(max_files=2000, max_part_size=room) as form:
            metadata, files = form.getlist("metadata"), form.getlist("file")
            if not metadata:
                raise ApiError(400, "INVALID_FILE_METADATA", "metadata file is missing")
            if len(metadata) != len(files):
                raise ApiError(400, "INVALID_FILE", "metadata and file count mismatch")
            for told, part in zip(metadata, files, strict=True):
                if not isinstance(told, UploadFile) or not isinstance(part, UploadFile):
                    raise ApiError(400, "INVALID_FILE", "both parts must be files")
                wanted = _metadata(await told.read())
                await _write(cell, _path(wanted["path"], instance, cell), part, wanted, room)
        return Response(status_code=200)

    async def _download(self, request: Request, instance: Instance, cell: Cell) -> Response:
        if {"offset", "limit"} & set(request.query_params):
            raise _bad("line-based reading is not supported by this host")
        fd = await _do(cell.files.open_read, _path(_required(request), instance, cell))
        size = os.fstat(fd).st_size
        start, end, status = 0, size, 200
        headers = {"Accept-Ranges": "bytes"}
        if match := _RANGE.fullmatch(request.headers.get("range", "")):
            start, end = int(match[1]), min(int(match[2] or size) + 1, size)
            status = 206
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
            if start >= end:
                os.close(fd)
                raise ApiError(416, "UNKNOWN", "")
        headers["Content-Length"] = str(end - start)
        os.lseek(fd, start, os.SEEK_SET)
        content = _content(fd, end - start)
        return StreamingResponse(content, status, headers, "application/octet-stream")

    async def _list(self, request: Request, instance: Instance, cell: Cell) -> Response:
        path = _path(_required(request), instance, cell)
        depth = request.query_params.get("depth", "1")
        if not depth.isdecimal() or int(depth[:9]) > _MAX_DEPTH:
            raise _bad(f"invalid query parameter 'depth': {depth}")
        entry = await _do(cell.files.stat, path)
        if entry.kind == "symlink":
            raise _bad(f"path is a symbolic link, refusing to traverse: {path}")
        if entry.kind != "directory":
            raise _bad(f"path is not a directory: {path}")
        found = await _do(cell.files.list, path, int(depth)) if int(depth) else []
        return JSONResponse([_entry(one) for one in found])

    async def _make(self, request: Request, instance: Instance, cell: Cell) -> Response:
        for path in await _object(request):
            full = _path(path, instance, cell)
            if not cell.files.is_directory(full):
                await _do(cell.files.make_directory, full)
        return Response(status_code=200)


async def _do(work: Callable[..., T], *arguments: Any) -> T:
    """Run blocking work on files in a thread; tell its errors as execd does."""
    try:
        return await asyncio.to_thread(work, *arguments)
    except OSError as error:
        if error.errno == errno.ENOENT:
            text = f"file not found. {error.strerror}"
            raise ApiError(404, "FILE_NOT_FOUND", text) from error
        raise _runtime(f"error accessing file: {error.strerror}") from error


async def _gone(cell: Cell, path: str) -> None:
    """Remove, silently where there is nothing: execd does not say."""
    if await _is_there(cell, path):
        await _do(cell.files.remove, path)


async def _is_there(cell: Cell, path: str) -> bool:
    try:
        await asyncio.to_thread(cell.files.stat, path)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return True


def _path(path: object, instance: Instance, cell: Cell) -> str:
    if not isinstance(path, str) or not path:
        raise _bad("missing query parameter 'path'")
    return expand(path, {"HOME": cell.home, **instance.request.env})


def _required(request: Request) -> str:
    path = request.query_params.get("path", "")
    if not path:
        raise ApiError(400, "MISSING_QUERY", "missing query parameter 'path'")
    return path


async def _json(request: Request, container: type[T]) -> T:
    try:
        found = json.loads(await request.body())
    except ValueError as error:
        raise _bad(f"error parsing request, MAYBE invalid body format. {error}") from error
    items = found if isinstance(found, list) else found.values() if isinstance(found, dict) else [0]
    if not isinstance(found, container) or not all(isinstance(item, dict) for item in items):
        raise _bad("error parsing request, MAYBE invalid body format")
    return found


async def _object(request: Request) -> dict[str, dict[str, Any]]:
    return await _json(request, dict)


def _metadata(data: bytes) -> dict[str, Any]:
    try:
        found = json.loads(data)
        if isinstance(found, dict) and isinstance(found.get("path"), str) and found["path"]:
            return found
    except ValueError:
        pass
    raise ApiError(400, "INVALID_FILE_METADATA", "invalid metadata format")


async def _write(
    cell: Cell, path: str, part: UploadFile, wanted: Mapping[str, Any], room: int
) -> None:
    fd = await _do(cell.files.open_write, path)
    try:
        while data := await part.read(_CHUNK):
            room -= len(data)
            if room < 0:
                raise _runtime(f"error copying file {path}. no space left on device")
            await _do(_write_all, fd, data)
        _permit(fd, wanted)
    finally:
        os.close(fd)


def _permit(fd: int, wanted: Mapping[str, Any]) -> None:
    """Set the mode, octal digits read as a decimal number; owners cannot be changed here."""
    for name in ("owner", "group"):
        if wanted.get(name) not in (None, "", *_USERS):
            raise _runtime(f"failed to lookup {name} {wanted[name]}")
    mode = wanted.get("mode") or 0
    if mode:
        os.fchmod(fd, int(str(mode), 8) & 0o777)


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _read_all(cell: Cell, path: str) -> bytes:
    with os.fdopen(cell.files.open_read(path), "rb") as file:
        return file.read()


def _write_whole(cell: Cell, path: str, data: bytes) -> None:
    fd = cell.files.open_write(path)
    try:
        _write_all(fd, data)
    finally:
        os.close(fd)


async def _content(fd: int, size: int) -> AsyncIterator[bytes]:
    """Yield exactly the announced bytes, unless the file shrinks meanwhile."""
    try:
        while size > 0 and (data := await asyncio.to_thread(os.read, fd, min(_CHUNK, size))):
            size -= len(data)
            yield data
    finally:
        os.close(fd)


def _bad(message: str) -> ApiError:
    return ApiError(400, "INVALID_REQUEST_BODY", message)


def _runtime(message: str) -> ApiError:
    return ApiError(500, "RUNTIME_ERROR", message)


def _entry(entry: Entry) -> dict[str, Any]:
    seconds, nanos = divmod(entry.modified_ns, 1_000_000_000)
    moment = f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{nanos:09d}Z"
    owner = _USERS[0] if entry.mine else _USERS[1]
    return {
        "path": entry.path,
        "type": entry.kind,
        "size": entry.size,
        "modified_at": moment,
        "created_at": moment,  # no birth time here
        "owner": owner,
        "group": owner,
        "mode": int(oct(entry.mode & 0o777)[2:]),
    }
