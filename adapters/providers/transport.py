"""Sockets for the provider client: one total time for each call, and no way into private networks.

httpx limits every single read; a peer that dribbles bytes can hold a call for ever. Here each
step gets what is left of the call's total. The time travels with the request (its `timeout`
extension), so a stream may be read by another thread than the one that opened it.
"""

from __future__ import annotations

import functools
import ipaddress
import logging
import socket
import ssl
import time
from collections.abc import Iterable
from typing import Any

import httpcore
import httpx

CHUNK = 65_536
"""Bytes written in one step, so that a slow reader cannot outlast the total either."""


class Deadline:
    """The moment a call must be over; may be moved closer while it runs."""

    def __init__(self, seconds: float) -> None:
        self.at = time.monotonic() + seconds

    def left(self) -> float:
        """Seconds left, negative when over."""
        return self.at - time.monotonic()

    def within(self, seconds: float) -> None:
        """Be over in at most so many seconds from now."""
        self.at = min(self.at, time.monotonic() + seconds)

    def limits(self, connect: float) -> dict[str, float]:
        """The `timeout` extension of a request; connecting may take `connect` seconds of it."""
        rest = Step(self.left())
        first = Step(min(connect, self.left()))
        rest.deadline = first.deadline = self
        return {"connect": first, "read": rest, "write": rest, "pool": first}


class Step(float):
    """Seconds for one network step, with the deadline of the whole call."""

    deadline: Deadline


def _cut(timeout: float | None, over: type[Exception]) -> float | None:
    if not isinstance(timeout, Step):
        return timeout
    left = timeout.deadline.left()
    if left <= 0:
        raise over("no time left")
    return min(float(timeout), left)


class _Stream(httpcore.NetworkStream):
    def __init__(self, inner: httpcore.NetworkStream) -> None:
        self._inner = inner

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, _cut(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for at in range(0, len(buffer), CHUNK):
            self._inner.write(buffer[at : at + CHUNK], _cut(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        left = _cut(timeout, httpcore.ConnectTimeout)
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, left))

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


class _Backend(httpcore.NetworkBackend):
    """Resolves once, connects to what was resolved, and only to public addresses unless the
    operator named the host. Name resolution itself has the system resolver's own limits.
    """

    def __init__(self, anywhere: frozenset[str]) -> None:
        self._inner = httpcore.SyncBackend()
        self._anywhere = anywhere

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        failure: Exception = httpcore.ConnectError("no public address")
        for address in self._addresses(host, port):
            left = _cut(timeout, httpcore.ConnectTimeout)
            try:
                return _Stream(self._inner.connect_tcp(address, port, left, local_address, []))
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as refused:
                failure = refused
        raise failure

    def _addresses(self, host: str, port: int) -> list[str]:
        try:
            found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):  # the latter for a name no resolver would take
            found = []
        addresses = list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))
        return addresses if host in self._anywhere else [a for a in addresses if public(a)]

    def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore.NetworkStream:
        raise httpcore.ConnectError("no unix sockets")

    def sleep(self, seconds: float) -> None:
        self._inner.sleep(seconds)


def public(address: str) -> bool:
    """Is this IP address routable on the internet, also when it hides inside an IPv6 one?"""
    ip = ipaddress.ip_address(address.partition("%")[0])
    mapped = getattr(ip, "ipv4_mapped", None)
    return (mapped or ip).is_global and not (mapped or ip).is_multicast


@functools.cache
def _tls() -> ssl.SSLContext:
    return httpx.create_ssl_context()  # slow to build: one for all


class Wire(httpx.HTTPTransport):
    """A pool of keep-alive connections over these sockets; `anywhere`: hosts the operator named.

    Used without httpx.Client on purpose: that would follow its own rules for cookies, redirects,
    proxies and logs.
    """

    def __init__(self, anywhere: frozenset[str]) -> None:
        # httpcore writes response headers at DEBUG, and those hold tokens and cursors.
        logging.getLogger("httpcore").setLevel(logging.WARNING)
        self._pool = httpcore.ConnectionPool(
            ssl_context=_tls(),
            max_connections=None,
            max_keepalive_connections=64,
            keepalive_expiry=15.0,
            network_backend=_Backend(anywhere),
        )
