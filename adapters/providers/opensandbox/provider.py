"""One OpenSandbox server as a Provider: commands, files, ports, pause, lifetimes and captures.

OpenSandbox knows no idempotency: a create whose answer is lost is settled by looking for its tags.
Facts: see `wire` for the lifecycle API and `agent` for execd inside the sandbox.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from urllib.parse import urlsplit

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
    InstanceState,
    Order,
    Output,
    Ref,
)

from ..answer import Answer, Verdicts
from ..http import Call, Credential, Http, is_base_url
from . import agent, captures, commands, declare, files, wire

PAGE = 100
PAGES = 20  # a look-up by full identity that needs more is no look-up
POLL_SECONDS = 0.1
READY_SECONDS = 10.0
PING_SECONDS = 2.0
LAST_SECONDS = 1.0
"""For a look after a call that took all the time there was."""


class OpenSandbox:
    """The server at `api_url`, with or without `/v1`. `endpoint_url`: where it says its sandboxes'
    ports are, when that is another address (`[server].eip` of its configuration).
    """

    def __init__(
        self,
        profile: Profile,
        key: Secret,
        api_url: str,
        endpoint_url: str | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._key = key
        self._base = api_url.rstrip("/").removesuffix("/v1")
        self._timeouts, self._least = profile.timeouts, profile.lifetime.min_ttl
        self._ports = urlsplit(endpoint_url or api_url)
        trusted: dict[str, Credential] = {endpoint_url: "sandbox"} if endpoint_url else {}
        self._http = Http(profile.hosts, {**trusted, api_url: "account"}, transport)
        self._agents = agent.Agents(self._http, self._base, key, profile.timeouts.call)
        self._captures = captures.Captures(self._call, profile.timeouts.call)

    def close(self) -> None:
        """Close the connections of this account."""
        self._http.close()

    def verify(self) -> None:
        try:
            first = self._call("GET", "/sandboxes", query="page=1&pageSize=1")
            wire.page(first.object(), 1, wire.described)
        except ProtocolBroken:
            raise
        except Unknown:
            pass
        else:
            return
        raise Outage  # a read without an effect is never in doubt

    def create(self, order: Order, *, timeout: float) -> Instance:
        """Not safe to repeat: each call makes an instance."""
        over = time.monotonic() + timeout
        answer = self._call(
            "POST",
            "/sandboxes",
            wire.create_body(order, self._least),
            expect=(202,),
            verdicts=wire.CREATES,
            timeout=timeout,
        )
        made = wire.described(answer.object())
        state = self._ready(made, min(over, time.monotonic() + READY_SECONDS))
        return Instance(made.id, state, declare.held(order.tags))

    def _ready(self, made: Instance, over: float) -> InstanceState:
        """The server says Running when the container runs; its agent comes a moment later."""
        ref = Ref(made.id)
        while made.state == "running" and (left := over - time.monotonic()) > 0:
            seconds = min(PING_SECONDS, left)
            try:
                ping = self._agents.call(ref, "GET", "/ping", agent.READS)
                self._http.call(replace(ping, timeout=seconds))
                return "running"
            except ProviderFailure:
                time.sleep(min(POLL_SECONDS, left))
        return "starting"

    def find(self, tags: Mapping[str, str]) -> Instance | None:
        """The oldest match, so that looking up and destroying in turn ends with none left."""
        wanted = declare.held(tags)
        matches: list[Instance] = []
        over = time.monotonic() + self._timeouts.call  # for all pages together: a lease waits
        for number in range(1, PAGES + 1):
            found, more = self._page(wanted, number, over - time.monotonic())
            # The filter is a help; only what the instance says itself counts.
            matches += [one for one in found if wanted.items() <= one.tags.items()]
            if not more:
                return min(matches, key=lambda i: (i.created_at or 0, i.id), default=None)
        raise ProtocolBroken

    def get(self, instance_id: str) -> Instance | None:
        return self._get(instance_id, self._timeouts.call)

    def _get(self, instance_id: str, seconds: float) -> Instance | None:
        try:
            answer = self._call("GET", self._path(instance_id), timeout=seconds)
            found = wire.described(answer.object())
        except Gone:
            return None
        if found.id != instance_id:
            raise ProtocolBroken
        return found

    def destroy(self, instance_id: str) -> None:
        self._call("DELETE", self._path(instance_id), expect=(204, 404))

    def instances(self, cursor: str | None) -> InstancePage:
        number = int(cursor or "1")
        found, more = self._page({}, number)
        return InstancePage(found, str(number + 1) if more else None)

    def _page(
        self, tags: Mapping[str, str], number: int, seconds: float | None = None
    ) -> tuple[tuple[Instance, ...], bool]:
        query = wire.list_query(tags, number, PAGE)
        answer = self._call("GET", "/sandboxes", query=query, timeout=seconds)
        return wire.page(answer.object(), number, wire.described)

    def extend(self, instance_id: str, lifetime_seconds: int) -> None:
        """The server takes a moment: its clock and ours must agree within the profile's margin."""
        body = wire.renewal(time.time() + lifetime_seconds)
        self._call("POST", self._path(instance_id, "/renew-expiration"), body)

    def pause(self, instance_id: str, keep: str) -> None:
        """Docker freezes what runs, Kubernetes keeps only the disk: that much is promised."""
        self._power(instance_id, "/pause", "paused", ("pausing",))

    def resume(self, instance_id: str, lifetime_seconds: int) -> Instance:
        seen = self._power(instance_id, "/resume", "running", ("starting",))
        until = time.time() + lifetime_seconds
        if seen.ends_at is not None and seen.ends_at / 1000 < until - 1:  # never shortened
            self.extend(instance_id, lifetime_seconds)
        return seen

    def _power(
        self, instance_id: str, action: str, state: str, on_the_way: tuple[str, ...]
    ) -> Instance:
        """Ask, then look until it is so, in the time of one call, for which a lease was taken;
        raises Unknown while it is still on its way.
        """
        over = time.monotonic() + self._timeouts.call
        refused: Conflicted | None = None
        try:
            self._call("POST", self._path(instance_id, action), expect=(202,))
        except Conflicted as conflict:
            refused = conflict  # it may be so already
        while True:
            seen = self._get(instance_id, max(LAST_SECONDS, over - time.monotonic()))
            if seen is None:
                raise Gone
            if seen.state == state:
                return seen
            if refused is not None and seen.state not in on_the_way:
                raise refused
            if time.monotonic() >= over:
                raise Unknown
            time.sleep(POLL_SECONDS)

    def run(self, ref: Ref, command: Command) -> Iterator[Output | Exit]:
        return commands.run(self._agents, ref, command)

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
        """Every port answers on the server's proxy, to everyone who knows its address."""
        path = self._path(ref.instance_id, f"/endpoints/{port}")
        answer = self._call("GET", path, query="use_server_proxy=true")
        address, headers = wire.endpoint(answer.object())
        url = f"{self._ports.scheme}://{address}"
        if not any(self._http.permits(url, kind) for kind in ("sandbox", "account")):
            raise ProtocolBroken
        return Endpoint(url, headers, "public")

    def close_port(self, ref: Ref, port: int) -> None:
        """Nothing to end: the server has no way to close a port."""

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

    def _path(self, instance_id: str, rest: str = "") -> str:
        return f"/sandboxes/{declare.safe_id(instance_id)}{rest}"

    def _call(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        query: str = "",
        expect: tuple[int, ...] = (200,),
        verdicts: Verdicts = wire.CALLS,
        timeout: float | None = None,
    ) -> Answer:
        json = {} if body is None else {"Content-Type": "application/json"}
        return self._http.call(
            Call(
                method,
                f"{self._base}/v1{path}",
                "account",
                self._timeouts.call if timeout is None else timeout,
                query=query,
                headers={agent.KEY_HEADER: self._key, **json},
                body=body,
                expect=expect,
                verdicts=verdicts,
            )
        )


SETTINGS = ("api_url", "endpoint_url")


def build(profile: Profile, key: Secret, settings: Mapping[str, str]) -> OpenSandbox:
    """A server from a pool's settings, of which `api_url` is required; raises Invalid."""
    wrong = {name: "is no setting of this kind" for name in settings if name not in SETTINGS}
    wrong |= {
        name: "must be an https URL, or http on this machine"
        for name, value in settings.items()
        if name in SETTINGS and not is_base_url(value)
    }
    if "api_url" not in settings:
        wrong["api_url"] = "is required: OpenSandbox is a server of your own"
    if wrong:
        raise Invalid(fields=tuple((f"settings.{name}", why) for name, why in wrong.items()))
    return OpenSandbox(profile, key, settings["api_url"], settings.get("endpoint_url"))
