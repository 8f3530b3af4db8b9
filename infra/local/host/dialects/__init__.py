"""The table of dialects: each is mounted under its name."""

from __future__ import annotations

from collections.abc import Mapping

from infra.local.host.dialect import Dialect
from infra.local.host.dialects.e2b import E2B
from infra.local.host.dialects.opensandbox import OpenSandbox

DIALECTS: Mapping[str, type[Dialect]] = {"e2b": E2B, "opensandbox": OpenSandbox}
