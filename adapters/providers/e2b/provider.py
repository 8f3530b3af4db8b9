"""One E2B account as a Provider, with commands, files, ports, pause, a movable lifetime, captures.

Facts: see `wire` for the control plane and `envd` for the agent inside the sandbox.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from urllib.parse import quote

import httpx

from sandbox_router.model.capability import Profile
from sandbox_router.model.failure import (
    Conflicted,
    Gone,
    Invalid,
    Outage,
    ProtocolBroken,
    ProviderFailure,
    Unknown,
)
from sandbox_router.model.secret import Secret
from sandbox_router.ports import (
    Capture,
    CapturePage,
    Command,
    Content,
    Endpoint,
    Entry,
    Exit,
    Instance,
    InstancePage,
    Order,
    Output,
    Ref,
)

from ..answer import Answer, Verdicts
from ..http import Call, Credential, Http, is_base_url
from . import captures, declare, envd, files, process, wire

API = "https://api.e2b.app"
PAGE = 100
PAGES = 20  # a look-up by full identity that needs more is no look-up


class E2B:
    """The account behind one key. `api_url`: another control plane; `sandbox_url`: one address
    that reaches every sandbox of it, told apart by headers (self-hosted, local host).
    """

    def __init__(
        self,
        profile: Profile,
        key: Secret,
        api_url: str | None = None,
        sandbox_url: str | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._key = key
        self._api = (api_url or API).rstrip("/")
        self._timeouts = profile.timeouts
        trusted: dict[str, Credential] = {}
        if api_url:
            trusted[api_url] = "account"
        if sandbox_url:
            trusted[sandbox_url] = "sandbox"
        self._http = Http(profile.hosts, trusted, transport)
        self._agents = envd.Agents(self._http, sandbox_url, profile.timeouts.call)
        self._captures = captures.Captures(self._call, profile.timeouts.call)

    def close(self) -> None:
        """Close the connections of this account."""
        self._http.close()

    def verify(self) -> None:
        try:
            self._call("GET", "/v2/sandboxes?limit=1").array()
        except ProtocolBroken:
            raise
        except Unknown:
            pass
        else:
            return
        raise Outage  # a read without an effect is never in doubt

    def create(self, order: Order, *, timeout: float) -> Instance:
        answer = self._call(
            "POST",
            "/v2/sandboxes",
            wire.create_body(order),
            headers={"Idempotency-Key": declare.identity(order.identity)},
            expect=(201,),
            verdicts=wire.RESTORES if order.from_capture else wire.CREATES,
            timeout=timeout,
        )
        made = wire.created(answer.object(), order.tags)
        self._agents.address(Ref(made.id, made.access))  # its domain must be one of E2B's
        return made

    def find(self, tags: Mapping[str, str]) -> Instance | None:
        """The oldest match, so that looking up and destroying in turn ends with none left.

        More than one can exist only if E2B forgot the idempotency key before a repeat.
        """
        matches: list[Instance] = []
        cursor: str | None = None
        over = time.monotonic() + self._timeouts.call  # for all pages together: a lease waits
        for _ in range(PAGES):
            page = self._page(wire.filter_query(tags), cursor, over - time.monotonic())
            # The filter is a help; only what the instance says itself counts.
            matches += [i for i in page.instances if tags.items() <= i.tags.items()]
            if (cursor := page.cursor) is None:
                break
        else:
            raise ProtocolBroken
        if not matches:
            return None
        oldest = min(matches, key=lambda i: (i.created_at or 0, i.id))
        found = self.get(oldest.id)  # list entries have no tokens
        return found if found is not None and tags.items() <= found.tags.items() else None

    def get(self, instance_id: str) -> Instance | None:
        try:
            found = wire.described(self._call("GET", self._path(instance_id)).object())
        except Gone:
            return None
        if found.id != instance_id:
            raise ProtocolBroken
        return found

    def destroy(self, instance_id: str) -> None:
        self._call("DELETE", self._path(instance_id), expect=(204, 404))

    def instances(self, cursor: str | None) -> InstancePage:
        return self._page("", cursor)

    def extend(self, instance_id: str, lifetime_seconds: int) -> None:
        body = wire.document({"timeout": lifetime_seconds})
        try:
            self._call("POST", self._path(instance_id, "/timeout"), body, expect=(204,))
            return
        except Gone as gone:
            refused: ProviderFailure = gone
        if self.get(instance_id) is not None:  # a paused one answers 404 here too
            refused = Conflicted()
        raise refused

    def pause(self, instance_id: str, keep: str) -> None:
        body = wire.document({} if keep == "memory" else {"memory": False})
        try:
            self._call("POST", self._path(instance_id, "/pause"), body, expect=(204,))
            return
        except Conflicted as conflict:
            refused = conflict
        seen = self.get(instance_id)  # 409 says "pausing" and "paused already" alike
        if seen is None:
            raise Gone
        if seen.state != "paused":
            raise refused

    def resume(self, instance_id: str, lifetime_seconds: int) -> Instance:
        return self._connect(instance_id, lifetime_seconds)

    def _connect(self, instance_id: str, lifetime_seconds: int) -> Instance:
        body = wire.document({"timeout": lifetime_seconds})  # without it E2B takes 300 s
        path = self._path(instance_id, "/connect").replace("/sandboxes/", "/v2/sandboxes/", 1)
        timeout = self._timeouts.create
        answer = self._call("POST", path, body, expect=(200, 201), timeout=timeout)
        found = wire.created(answer.object(), {})
        if found.id != instance_id:
            raise ProtocolBroken
        return found

    def run(self, ref: Ref, command: Command) -> Iterator[Output | Exit]:
        return process.run(self._agents, ref, command)

    def read_file(self, ref: Ref, path: str, limit: int) -> AbstractContextManager[Iterator[bytes]]:
        return files.read(self._agents, ref, path, limit)

    def write_file(self, ref: Ref, path: str, content: Content) -> None:
        files.write(self._agents, ref, path, content)

    def move_file(self, ref: Ref, source: str, destination: str) -> None:
        files.move(self._agents, ref, source, destination)

    def remove_file(self, ref: Ref, path: str) -> None:
        files.remove(self._agents, ref, path)

    def list_directory(self, ref: Ref, path: str) -> tuple[Entry, ...]:
        return files.children(self._agents, ref, path)

    def open_port(self, ref: Ref, port: int) -> Endpoint:
        """E2B needs no call: every port answers to the holder of the instance's one token."""
        if wire.TRAFFIC not in ref.access:
            ref = self._learn(ref)
        return self._agents.endpoint(ref, port)

    def close_port(self, ref: Ref, port: int) -> None:
        """Nothing to end: the port stays closed to everyone without the token."""

    def capture(self, instance_id: str, name: str, contents: str, *, timeout: float) -> Capture:
        return self._captures.take(instance_id, name, contents, timeout)

    def find_capture(self, instance_id: str, name: str) -> Capture | None:
        return self._captures.find(instance_id, name)

    def get_capture(self, capture_id: str) -> Capture | None:
        return self._captures.get(capture_id)

    def destroy_capture(self, capture_id: str) -> None:
        self._captures.destroy(capture_id)

    def captures(self, cursor: str | None) -> CapturePage:
        return self._captures.page(cursor)

    def _learn(self, ref: Ref) -> Ref:
        """The port token of an instance that was found by its tags: only connect tells it.

        Connect never shortens a life, so asking for what is left changes nothing.
        """
        seen = self.get(ref.instance_id)
        if seen is None:
            raise Gone
        if seen.state != "running" or seen.ends_at is None:
            raise Conflicted
        left = max(1, math.ceil(seen.ends_at / 1000 - time.time()))
        return Ref(ref.instance_id, {**ref.access, **self._connect(ref.instance_id, left).access})

    def _page(self, query: str, cursor: str | None, seconds: float | None = None) -> InstancePage:
        parts = [query, "state=running,paused", f"limit={PAGE}"]
        if cursor is not None:
            parts.append(f"nextToken={quote(cursor, safe='')}")
        path = f"/v2/sandboxes?{'&'.join(filter(None, parts))}"
        answer = self._call("GET", path, timeout=seconds)
        entries = tuple(wire.described(entry) for entry in wire.entries(answer))
        return InstancePage(entries, wire.following(answer, cursor))

    def _path(self, instance_id: str, rest: str = "") -> str:
        return f"/sandboxes/{declare.instance_id(instance_id)}{rest}"

    def _call(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        expect: tuple[int, ...] = (200,),
        verdicts: Verdicts = wire.CALLS,
        timeout: float | None = None,
    ) -> Answer:
        path, _, query = path.partition("?")  # encoded already, ids included
        json = {} if body is None else {"Content-Type": "application/json"}
        return self._http.call(
            Call(
                method,
                self._api + path,
                "account",
                self._timeouts.call if timeout is None else timeout,
                query=query,
                headers={"X-API-Key": self._key, **json, **(headers or {})},
                body=body,
                expect=expect,
                verdicts=verdicts,
            )
        )


SETTINGS = ("api_url", "sandbox_url")


def build(profile: Profile, key: Secret, settings: Mapping[str, str]) -> E2B:
    """An account from a pool's settings, both optional; raises Invalid on a wrong one."""
    wrong = {name: "is no setting of this kind" for name in settings if name not in SETTINGS}
    wrong |= {
        name: "must be an https URL, or http on this machine"
        for name, value in settings.items()
        if name in SETTINGS and not is_base_url(value)
    }
    if wrong:
        raise Invalid(fields=tuple((f"settings.{name}", why) for name, why in wrong.items()))
    return E2B(profile, key, settings.get("api_url"), settings.get("sandbox_url"))
