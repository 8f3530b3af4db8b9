"""Paths as execd reads them: `$NAME`, `${NAME}` and a leading `~` are expanded, always.

Facts: components/execd/pkg/util/pathutil/path.go at 3bb6fad, and Go's os.Expand.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from infra.local.host.dialects.opensandbox.errors import ApiError

_NAMED = re.compile(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))", re.ASCII)
_SPECIAL = re.compile(r"\$[*#$@!?\-0-9]")


def expand(path: str, env: Mapping[str, str]) -> str:
    """Return the path that is meant; raises the error for a name that is not set."""

    def value(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        if name not in env:
            text = f"path references undefined environment variables: {name}"
            raise ApiError(500, "RUNTIME_ERROR", text)
        return env[name]

    return _SPECIAL.sub("", _NAMED.sub(value, path))
