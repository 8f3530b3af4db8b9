"""Clients that use sandboxes as programs do: keys, retries, replays, and sometimes they walk off.

Every answer is written down, with what the caller knew; nothing is judged here.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx

ANSWER_SECONDS = 15.0
RETRIES = 8
CREATED, STARTING = 201, 202


@dataclass(frozen=True)
class Event:
    """One call and what came of it. status 0: no answer, so anything may have happened.

    body: the answer's; sent: the request's.
    """

    op: str
    began: float
    ended: float
    status: int
    key: str | None = None
    sandbox: str | None = None
    instance: str | None = None
    code: str | None = None
    body: str = ""
    sent: str = ""
    lie: str | None = None


class History:
    """What all clients saw."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._lock = threading.Lock()

    def add(self, event: Event) -> Event:
        """Write it down."""
        with self._lock:
            self._events.append(event)
        return event

    def __iter__(self) -> Iterator[Event]:
        with self._lock:
            return iter(tuple(self._events))


class Client:
    """One of them, with its own luck and connection."""

    def __init__(
        self, url: str, key: str, history: History, seed: str, ttls: tuple[int, int]
    ) -> None:
        self._chance = random.Random(seed)
        self._name, self._ttls, self._history = seed, ttls, history
        headers = {"Authorization": f"Bearer {key}"}
        self._http = httpx.Client(
            base_url=url, headers=headers, timeout=ANSWER_SECONDS, trust_env=False
        )
        self._made = 0

    def work(self, over: threading.Event) -> None:
        """One sandbox after another."""
        with self._http:
            while not over.is_set():
                self._one(over)
                over.wait(self._chance.uniform(0.1, 1.0))

    def _one(self, over: threading.Event) -> None:
        self._made += 1
        key = f"{self._name}-{self._made}"
        body: dict[str, Any] = {"ttl_seconds": self._chance.randint(*self._ttls), "size": "1x1"}
        if self._chance.random() < 0.3:
            body["env"] = {"A": key}  # sealed at hand-over
        made = self._create(key, body, over)
        if made is None:
            return
        for _ in range(self._chance.randint(0, 4)):
            if over.is_set():
                return
            self._use(made)
            time.sleep(self._chance.uniform(0, 0.3))
        if self._chance.random() < 0.3:
            self._call("create", "POST", "/v1/sandboxes", key=key, body=body)  # once more
        if self._chance.random() < 0.2:
            other = {**body, "ttl_seconds": body["ttl_seconds"] + 1}
            event = self._call("create", "POST", "/v1/sandboxes", key=key, body=other)
            if 200 <= event.status < 300:
                self._lied(event, f"another body got an answer under {key}")
        if self._chance.random() < 0.5:
            self._destroy(made, over)

    def _create(self, key: str, body: dict[str, Any], over: threading.Event) -> str | None:
        """The id, once the create is settled; a client that gives up has none."""
        wait = self._chance.choice(("0", "2", "10"))
        for _ in range(self._chance.randint(1, RETRIES)):
            event = self._call("create", "POST", "/v1/sandboxes", key=key, body=body, wait=wait)
            if event.status == CREATED:
                return event.sandbox
            if event.status not in (0, STARTING) and event.status < 500:
                return None
            if over.wait(self._chance.uniform(0.05, 1.0)):
                return None
        return None

    def _use(self, made: str) -> None:
        box = f"/v1/sandboxes/{made}"
        match self._chance.randrange(6):
            case 0 | 1:
                word = f"w{self._chance.randrange(10**6)}"
                event = self._call("exec", "POST", f"{box}/exec", body={"command": f"echo {word}"})
                if event.status == 200 and json.loads(event.body)["stdout"] != word + "\n":
                    self._lied(event, f"echo {word} said {event.body}")
            case 2 | 3:
                self._files(box)
            case 4:
                if self._call("pause", "POST", f"{box}/pause").status == 200:
                    self._call("resume", "POST", f"{box}/resume")
            case _:
                self._call("get", "GET", box, sandbox=made)

    def _files(self, box: str) -> None:
        data, path = self._chance.randbytes(200).hex(), f"{box}/files?path=/tmp/note"
        if self._call("write", "PUT", path, data=data).status == 204:
            event = self._call("read", "GET", path)
            if event.status == 200 and event.body != data:
                self._lied(event, "what was written is not what was read")

    def _destroy(self, made: str, over: threading.Event) -> None:
        for _ in range(self._chance.randint(1, RETRIES)):
            path = f"/v1/sandboxes/{made}"
            event = self._call("destroy", "DELETE", path, sandbox=made)
            if event.status in (204, 404) or over.wait(self._chance.uniform(0.05, 1.0)):
                return

    def _lied(self, event: Event, what: str) -> None:
        said = Event("lie", event.began, event.ended, event.status, body=event.body, lie=what)
        self._history.add(said)

    def _call(
        self,
        op: str,
        method: str,
        path: str,
        *,
        key: str | None = None,
        body: object = None,
        data: str | None = None,
        wait: str | None = None,
        sandbox: str | None = None,
    ) -> Event:
        headers = {"Content-Type": "application/octet-stream"} if data is not None else {}
        headers |= {"Idempotency-Key": key} if key else {}
        headers |= {"Prefer": f"wait={wait}"} if wait else {}
        began = time.time()
        try:
            answer = self._http.request(method, path, json=body, content=data, headers=headers)
        except httpx.TransportError as error:
            code, sent = type(error).__name__, json.dumps(body)
            event = Event(op, began, time.time(), 0, key, sandbox, code=code, sent=sent)
            return self._history.add(event)
        told = _document(answer)
        return self._history.add(
            Event(
                op,
                began,
                time.time(),
                answer.status_code,
                key,
                told.get("id") or sandbox,
                told.get("instance_id"),
                told.get("code"),
                answer.text,
                json.dumps(body),
            )
        )


def _document(answer: httpx.Response) -> dict[str, Any]:
    if "json" not in answer.headers.get("content-type", ""):
        return {}
    found: dict[str, Any] = answer.json()
    return found
