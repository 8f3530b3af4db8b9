"""The one HTTP client of the provider adapters: bounded in time and size, and sure of its peer.

No redirects, no retries, no proxies, no cookies. Every failure is a class of the model's tree,
made of our own words: provider text, URLs, headers and bodies never enter one, and no exception
that carries them stays attached.
"""

from __future__ import annotations

import math
import re
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Literal

import httpx

from sandbox_router.model import failure as fail
from sandbox_router.model.capability import HostRule
from sandbox_router.model.failure import Failure, ProtocolBroken, ProviderFailure, Unknown
from sandbox_router.model.secret import Secret
from sandbox_router.ports import Content

from .answer import Answer, Verdicts
from .transport import Deadline, Wire

JSON_LIMIT = 4_000_000
ERROR_LIMIT = 65_536
CONNECT_SECONDS = 5.0
_HEADER = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?")
_NEVER_SENT = (
    httpx.ConnectError,  # refused, name not found, TLS handshake failed
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.UnsupportedProtocol,
)

Credential = Literal["account", "sandbox"]


@dataclass(frozen=True)
class Call:
    """One request. `url` is absolute and has no query; `query` is encoded already, once.

    credential: which hosts may be asked. timeout: seconds in total. expect: statuses that are
    success. limit: bytes of a whole answer accepted. body: in pieces it goes out
    as it comes, and what they raise passes through.
    """

    method: str
    url: str
    credential: Credential
    timeout: float
    query: str = field(default="", repr=False)
    headers: Mapping[str, str | Secret] = field(default_factory=dict, repr=False)
    body: bytes | Content | None = field(default=None, repr=False)
    expect: Sequence[int] = (200,)
    verdicts: Verdicts = field(default_factory=Verdicts, repr=False)
    limit: int = JSON_LIMIT


class Incoming:
    """An answer while it arrives. `deadline` may be moved closer."""

    def __init__(self, response: httpx.Response, deadline: Deadline) -> None:
        self.status = response.status_code
        self.headers: Mapping[str, str] = response.headers
        self.deadline = deadline
        # A test's transport may give an answer that is whole already.
        whole = response.is_stream_consumed
        self._raw = iter([response.content]) if whole else response.iter_raw()

    def chunks(self) -> Iterator[bytes]:
        """Bytes as they come; raises Unknown when they stop early or the time is over."""
        while (chunk := self._next()) is not None:
            yield chunk

    def _next(self) -> bytes | None:
        started = time.monotonic()
        try:
            if self.deadline.left() > 0:
                return next(self._raw, None)
        except (httpx.HTTPError, httpx.StreamError, OSError):
            pass
        finally:
            _spent(time.monotonic() - started)
        raise Unknown

    def pieces(self, limit: int, over: type[Failure]) -> Iterator[bytes]:
        """The chunks, of at most `limit` bytes together."""
        declared = self.headers.get("content-length", "")
        if declared.isdecimal() and int(declared[:20]) > limit:
            raise over
        size = 0
        for chunk in self.chunks():
            size += len(chunk)
            if size > limit:
                raise over
            yield chunk

    def read(self, limit: int, over: type[Failure]) -> bytes:
        """All of it, at most `limit` bytes."""
        return b"".join(self.pieces(limit, over))


class Http:
    """One account's way to its provider; safe for threads, opened at the first call.

    hosts: the profile's rules, the first that matches decides. trusted: base URLs the operator
    configured and the credential each may get. transport: another way to send, for tests.
    """

    def __init__(
        self,
        hosts: Sequence[HostRule],
        trusted: Mapping[str, Credential] | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._rules = [(_host_pattern(rule.pattern), rule.credential) for rule in hosts]
        self._trusted = {(_origin(httpx.URL(u)), c) for u, c in (trusted or {}).items()}
        self._given = transport
        self._open: httpx.BaseTransport | None = None
        self._lock = threading.Lock()

    def call(self, call: Call) -> Answer:
        """The whole answer; raises the failure it means, ProtocolBroken, Outage or Unknown."""
        with self.stream(call) as incoming:
            body = incoming.read(call.limit, ProtocolBroken)
            return Answer(incoming.status, incoming.headers, body)

    @contextmanager
    def stream(self, call: Call) -> Iterator[Incoming]:
        """The answer as it arrives; leaving early cuts the connection."""
        deadline = Deadline(_within(call.timeout))
        if deadline.left() <= 0:
            raise fail.Outage  # not sent: nobody could wait for its answer any more
        response = self._send(self._request(call, deadline))
        try:
            incoming = Incoming(response, deadline)
            if incoming.status not in call.expect:
                raise call.verdicts.failure(incoming.status, incoming.headers, _error(incoming))
            if incoming.headers.get("content-encoding", "identity") != "identity":
                raise ProtocolBroken  # never asked for; inflating it could fill the memory
            yield incoming
        finally:
            response.close()

    def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        with self._lock:
            opened, self._open = self._open, None
        if opened is not None:
            opened.close()

    def permits(self, url: str, credential: Credential) -> bool:
        """May this URL be asked with this credential?"""
        try:
            return self._check(httpx.URL(url), credential)
        except (httpx.InvalidURL, ValueError):
            return False

    def _check(self, url: httpx.URL, credential: Credential) -> bool:
        if url.userinfo or url.fragment or url.query:
            return False
        if (_origin(url), credential) in self._trusted:
            return _encrypted_or_local(url)
        if url.scheme != "https" or url.port not in (None, 443):
            return False
        matches = (allowed for pattern, allowed in self._rules if pattern.fullmatch(url.host))
        return next(matches, None) == credential

    def _request(self, call: Call, deadline: Deadline) -> httpx.Request:
        if not self.permits(call.url, call.credential):
            raise ProtocolBroken
        headers = {"accept-encoding": "identity", "user-agent": "sandbox-router", "accept": "*/*"}
        for name, value in call.headers.items():
            text = value.reveal() if isinstance(value, Secret) else value
            if not _HEADER.fullmatch(text):
                raise fail.BrokenPool(f"The value for the header {name} cannot be sent")
            headers[name] = text
        body: bytes | Iterable[bytes] | None
        if isinstance(call.body, Content):
            headers["content-length"], body = str(call.body.size), _exactly(call.body)
        else:
            body = call.body
        url = httpx.URL(call.url).copy_with(query=call.query.encode("ascii") or None)
        limits = {"timeout": deadline.limits(CONNECT_SECONDS)}
        return httpx.Request(call.method, url, headers=headers, content=body, extensions=limits)

    def _send(self, request: httpx.Request) -> httpx.Response:
        started = time.monotonic()
        kind: type[ProviderFailure] = Unknown
        try:
            response = self._transport().handle_request(request)
            response.request = request
            return response
        except _NEVER_SENT:
            kind = fail.Outage
        except (httpx.HTTPError, OSError):
            pass
        finally:
            _spent(time.monotonic() - started)
        raise kind

    def _transport(self) -> httpx.BaseTransport:
        with self._lock:
            if self._open is None:
                hosts = frozenset(origin[1] for origin, _ in self._trusted)
                self._open = self._given or Wire(hosts)
            return self._open


def _exactly(content: Content) -> Iterator[bytes]:
    """The pieces, cut off when they are not what was announced: the peer must not take them."""
    left = content.size
    for piece in content.pieces:
        left -= len(piece)
        if left < 0:
            break
        yield piece
    if left:
        raise Unknown


def is_base_url(text: str) -> bool:
    """May an operator configure this address: https, or http on this machine, and nothing else?"""
    try:
        url = httpx.URL(text)
    except (httpx.InvalidURL, ValueError):
        return False
    extra = url.userinfo or url.query or url.fragment
    return bool(url.host) and not extra and _encrypted_or_local(url)


def _encrypted_or_local(url: httpx.URL) -> bool:
    return url.scheme == "https" or (url.scheme == "http" and _loopback(url.host))


def _error(incoming: Incoming) -> bytes:
    try:
        return incoming.read(ERROR_LIMIT, ProtocolBroken)
    except ProviderFailure:
        return b""  # the status says enough


def _origin(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


def _loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _host_pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(re.escape(pattern).replace(r"\*", r"[a-z0-9]([a-z0-9-]*[a-z0-9])?"))


class Waited:
    """Seconds spent waiting for providers, added up by any thread. until: when no more are there,
    on the monotonic clock.
    """

    def __init__(self, until: float) -> None:
        self.seconds, self.until = 0.0, until
        self._lock = threading.Lock()

    def add(self, seconds: float) -> None:
        """Count some more."""
        with self._lock:
            self.seconds += seconds


_WAITED: ContextVar[Waited | None] = ContextVar("waited", default=None)


@contextmanager
def waiting(most: float = math.inf) -> Iterator[Waited]:
    """Count what this context, and threads given a copy of it, wait for providers. Whatever a call
    may take, it is over in `most` seconds from now: whoever asked does not wait longer.
    """
    waited = Waited(time.monotonic() + most)
    token = _WAITED.set(waited)
    try:
        yield waited
    finally:
        _WAITED.reset(token)


def _within(seconds: float) -> float:
    waited = _WAITED.get()
    return seconds if waited is None else min(seconds, waited.until - time.monotonic())


def _spent(seconds: float) -> None:
    if (waited := _WAITED.get()) is not None:
        waited.add(seconds)
