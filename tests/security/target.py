"""A deployment under attack: two tenants, and where a secret could show."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from functions.edge import wiring
from functions.edge.settings import Settings
from sandbox_router.model.secret import Secret
from tests.local.acceptance.deployment import Deployment

ABSENT = "sbx-" + "a" * 26
SCOPES = ("sandboxes:read", "sandboxes:write")


class Target(Deployment):
    """A router with its host, the operator's own key, and a client of another tenant."""

    other_key = "sbr_CANARY-other-tenants-key-" + "k" * 16

    def __init__(self, root: Path) -> None:
        super().__init__(root, POWERTOOLS_LOG_LEVEL="DEBUG")
        self.other = httpx.Client()

    def started(self) -> Target:
        self.start()
        resolved = self.state / "pools.resolved.json"
        settings = Settings.of({"STATE": str(self.state), "POOLS": str(resolved)})
        wiring.build(settings).add_key("other", Secret(self.other_key), SCOPES)
        self.other.close()
        bearer = {"Authorization": f"Bearer {self.other_key}"}
        self.other = httpx.Client(base_url=self.api.base_url, headers=bearer, timeout=60)
        return self

    @property
    def key(self) -> str:
        """The operator's."""
        return (self.state / "key").read_text().strip()

    def sinks(self) -> dict[str, bytes]:
        """Everything that outlives a request on our side: files of the state folder, what the
        processes printed, the host's log of calls; not the disks of the vendor's sandboxes.
        """
        files = [path for path in self.state.iterdir() if path.is_file()]
        found = {path.name: path.read_bytes() for path in [*files, self.output]}
        found["calls"] = json.dumps(self.calls()).encode()
        return found

    def end(self) -> None:
        self.other.close()
        super().end()


def forms(secret: str) -> list[bytes]:
    """How a secret could show, hidden a little or cut."""
    coded = base64.b64encode(secret.encode()).decode().rstrip("=")
    escaped = json.dumps(secret)[1:-1]
    whole = [secret, coded[4:-4], quote(secret, safe=""), escaped, secret[::-1]]
    return [form.encode() for form in (*whole, secret.encode().hex(), secret[:12])]


def showing(sinks: dict[str, bytes], secrets: list[str]) -> list[tuple[str, str]]:
    """Which secret shows where."""
    return [
        (name, secret)
        for name, data in sinks.items()
        for secret in secrets
        if any(form in data for form in forms(secret))
    ]


def problem(answer: httpx.Response) -> dict[str, Any]:
    """A refusal without what is different each time."""
    found: dict[str, Any] = answer.json()
    return found | {"request_id": ""}
