"""Clients at work on the deployment, and what they leave at the provider."""

from __future__ import annotations

import time
from collections import Counter
from datetime import datetime
from typing import Any

from tests.cloud.e2e.deployment import Cloud
from tests.local.acceptance.deployment import eventually
from tests.local.clients import Clients, Load

ENDED = {"destroyed", "failed", "lost"}
GONE_SECONDS, TERMINAL_SECONDS = 60.0, 120.0
"""After a lifetime: the provider's own limit; the sweep's bound where a message was lost."""
Box = dict[str, Any]


def moment(text: str) -> float:
    """Seconds since 1970 of a time as the contract writes it."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


class Watched:
    """One load, its history, and the instances that came of it."""

    def __init__(self, cloud: Cloud, load: Load) -> None:
        self._cloud = cloud
        self.clients = Clients(cloud.api, load)
        self._before = {one["id"] for one in self._all()}

    def _all(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._cloud.host.get("/_host/instances").json()["instances"]
        return found

    def made(self) -> dict[str, list[dict[str, Any]]]:
        """The instances made since the start, gone or not, by the sandbox they are of."""
        found: dict[str, list[dict[str, Any]]] = {}
        for one in self._all():
            if one["id"] not in self._before:
                found.setdefault(one["metadata"]["constal-sandbox-id"], []).append(one)
        return found

    def alive(self) -> Counter[str]:
        """How many live, by sandbox."""
        living = {
            id_: sum(one["gone_at"] is None for one in many) for id_, many in self.made().items()
        }
        return +Counter(living)

    def boxes(self) -> dict[str, Box]:
        """Every record anybody was told of, as it is now."""
        return {id_: self._cloud.get(id_) for id_ in self.clients.ids}

    def settled(self) -> dict[str, Box]:
        """The records, once nobody is on the way and what lives is what runs."""

        def look() -> dict[str, Box]:
            boxes = self.boxes()
            running = {id_: 1 for id_, box in boxes.items() if box["state"] == "running"}
            quiet = {box["state"] for box in boxes.values()} <= {"running", *ENDED}
            return boxes if quiet and running == self.alive() else {}

        found: dict[str, Box] = eventually(look, TERMINAL_SECONDS, every=1)
        return found

    def over(self) -> dict[str, float]:
        """Wait until every lifetime is over, and confirmed; how late each instance went, seconds.
        What was destroyed before its time is not among them.
        """
        ends = {id_: moment(box["expires_at"]) for id_, box in self.boxes().items()}
        left = max(ends.values()) - time.time()
        eventually(lambda: not self.alive(), left + GONE_SECONDS, every=0.5)

        def confirmed() -> bool:
            return {box["state"] for box in self.boxes().values()} <= ENDED

        eventually(confirmed, TERMINAL_SECONDS - GONE_SECONDS, every=1)
        late = {
            id_: max(moment(one["gone_at"]) - ends[id_] for one in many)
            for id_, many in self.made().items()
        }
        return {id_: seconds for id_, seconds in late.items() if seconds >= 0}
