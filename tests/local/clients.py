"""Clients that fight for keys, and the history of what they saw; they know an API, nothing else."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import httpx

from tests.sim.history import Event, Kind

UNKNOWN = (502, 504)
"""A gateway that says so does not know what its function has done."""


@dataclass(frozen=True)
class Load:
    """keys: new ones every second, which all clients fight for. goes_away: how many calls are hung
    up after `patience` seconds, so that nobody learns what came of them. ttl: of every sandbox.
    """

    clients: int = 16
    seconds: float = 10.0
    keys: int = 4
    goes_away: float = 0.2
    patience: float = 0.02
    destroys: float = 0.1
    ttl: int = 300


class Clients:
    """What each client does, and what it saw."""

    def __init__(self, api: httpx.Client, load: Load) -> None:
        self._api, self._load = api, load
        self._numbers, self._lock = itertools.count(1), threading.Lock()
        self.history: list[Event] = []
        self.failures: list[httpx.Response] = []

    @property
    def keys(self) -> set[str]:
        """The keys anybody sent."""
        return {event.key for event in self.history if event.key}

    @property
    def ids(self) -> set[str]:
        """The sandboxes anybody was told of."""
        told = (event for event in self.history if event.kind == "ok")
        return {event.sandbox for event in told if event.sandbox}

    def run(self, name: str = "") -> None:
        """All clients at once, until the time is over; `name` makes keys of their own."""
        with ThreadPoolExecutor(self._load.clients) as threads:
            list(threads.map(partial(self._run, name), range(self._load.clients)))

    def ask_again(self) -> None:
        """One more create under every key: then each sandbox that may be there was told of."""
        with ThreadPoolExecutor(self._load.clients) as threads:
            list(threads.map(self._ask, sorted(self.keys)))

    def _ask(self, key: str) -> None:
        for ttl in (self._load.ttl, self._load.ttl + 1):
            self.create(key, ttl, 20, 60.0)

    def _run(self, name: str, number: int) -> None:
        """Creates, repeats, other bodies and destroys."""
        chance, began, load = random.Random(number), time.monotonic(), self._load
        while (gone := time.monotonic() - began) < load.seconds:
            key = f"key-{id(self)}-{name}{int(gone)}-{chance.randrange(load.keys)}"
            ttl = load.ttl + 1 if chance.random() < 0.1 else load.ttl
            timeout = load.patience if chance.random() < load.goes_away else 60.0
            made = self.create(key, ttl, chance.choice((0, 3, 10)), timeout)
            time.sleep(chance.random() / 10)
            if made and chance.random() < load.destroys:
                self.destroy(made)

    def note(self, kind: Kind, op: str, call: int = 0, **more: Any) -> None:
        """A line of the history."""
        with self._lock:
            self.history.append(Event(kind, op, time.monotonic(), call, **more))

    def create(self, key: str, ttl: int, wait: int, timeout: float) -> str | None:
        """One POST with a key; the sandbox it told of."""
        call = next(self._numbers)
        self.note("invoke", "create", call, tenant="t", key=key, body=str(ttl))
        headers = {"Idempotency-Key": key, "Prefer": f"wait={wait}"}
        body = {"ttl_seconds": ttl, "size": "1x1"}
        answer = self._sent(
            call, "POST", "/v1/sandboxes", json=body, headers=headers, timeout=timeout
        )
        if answer is None:
            return None
        told = answer.json()
        good = answer.status_code in (201, 202)
        reused = told.get("code") == "idempotency_key_reused"
        self.note(
            "ok" if good else "fail",
            "create",
            call,
            status=answer.status_code,
            sandbox=told.get("id") if good else None,
            instance=told.get("instance_id") if good else None,
            state="reused" if reused else told.get("state"),
            answer=answer.text if answer.status_code == 201 else "",
        )
        return told["id"] if good else None

    def destroy(self, sandbox_id: str) -> None:
        """One DELETE."""
        call = next(self._numbers)
        self.note("invoke", "destroy", call, tenant="t", sandbox=sandbox_id)
        answer = self._sent(call, "DELETE", f"/v1/sandboxes/{sandbox_id}")
        if answer is not None:
            good = answer.status_code in (202, 204)
            self.note("ok" if good else "fail", "destroy", call, sandbox=sandbox_id)

    def _sent(self, call: int, method: str, path: str, **more: Any) -> httpx.Response | None:
        """The answer, unless nobody knows what came of the call."""
        op = "create" if method == "POST" else "destroy"
        try:
            answer = self._api.request(method, path, **more)
        except httpx.HTTPError:
            self.note("info", op, call)
            return None
        if answer.status_code >= 500:
            with self._lock:
                self.failures.append(answer)
        if answer.status_code in UNKNOWN:
            self.note("info", op, call, status=answer.status_code)
            return None
        return answer

    def saw(
        self, boxes: Mapping[str, Mapping[str, Any]], instances: Iterable[Mapping[str, Any]]
    ) -> None:
        """What there is when all is quiet: the records by id, and the instances that live."""
        for id_, box in boxes.items():
            shown = box.get("instance_id")
            self.note("seen", "get", sandbox=id_, state=box["state"], instance=shown)
        for one in instances:
            sandbox = one["metadata"]["constal-sandbox-id"]
            self.note("alive", "list", sandbox=sandbox, instance=one["id"])
