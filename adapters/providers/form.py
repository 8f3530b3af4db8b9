"""Files as a form: how agents that take no bare body are sent one."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from itertools import chain

from sandbox_router.ports import Content


def form(*files: tuple[str, Content]) -> tuple[str, Content]:
    """The content type and the body of a form with these parts, each named twice as it is here."""
    mark = secrets.token_hex(16)
    end = f"--{mark}--\r\n".encode()
    size, pieces = len(end), list[Iterable[bytes]]()
    for name, content in files:
        head = (
            f'--{mark}\r\nContent-Disposition: form-data; name="{name}"; filename="{name}"\r\n'
            "Content-Type: application/octet-stream\r\n\r\n"
        ).encode()
        size += len(head) + content.size + 2
        pieces += [(head,), content.pieces, (b"\r\n",)]
    return f"multipart/form-data; boundary={mark}", Content(size, chain(*pieces, (end,)))
