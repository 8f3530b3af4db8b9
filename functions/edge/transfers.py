"""Bodies of requests for files through URLs."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from sandbox_router.session.transfers import LARGEST

from .bodies import Body, Complaints
from .fields import Path, path_complaints

PATH = "Absolute path of a file in the sandbox, byte-exact"


class DownloadBody(Body):
    """Which file."""

    path: Path = Field(description=PATH, examples=["/tmp/result.tar"])

    def complaints(self) -> Complaints:
        """No way up, and not the root."""
        yield from path_complaints(self.path, "path", entry=True)


class UploadBody(DownloadBody):
    """Where the file goes."""

    size_bytes: Annotated[int, Field(ge=0, le=LARGEST)] | None = Field(
        None, description="Then the URL takes exactly so many bytes"
    )
